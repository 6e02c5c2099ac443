/*
 * A flow under the law. A packet of the law's is a segment of the kernel's, with its headers; time is that of a clock
 * which senders share. While the program has nothing to send, the law's clock stops.
 */
struct law_flow {
	struct law law;
	u64 clock_us; /* from the machine's clock since it started to the shared one */
	u64 seen_us;
	u64 idle_us;
	u64 delivered; /* packets */
	u64 lost;
	u64 marked;
	u32 delivered_before; /* the kernel's counts, which wrap */
	u32 lost_before;
	u32 marked_before;
};

static noinline void law_pace(struct sock *sk, const struct law_flow *flow)
{
	const u64 packets = f64_div(flow->law.rate, f64_mul(LAW_PACKET, f64_from(8)));
	const u64 rate = f64_whole(f64_mul(packets, f64_from(tcp_sk(sk)->mss_cache))), most = sk->sk_max_pacing_rate;

	sk->sk_pacing_rate = rate < most ? rate : most;
}

static __always_inline void law_begin(struct sock *sk, struct law_flow *flow, u64 shared_us, u64 now_us)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	flow->law = law_start;
	flow->clock_us = shared_us - now_us;
	flow->seen_us = now_us;
	flow->idle_us = 0;
	flow->delivered = 0;
	flow->lost = 0;
	flow->marked = 0;
	flow->delivered_before = tp->delivered;
	flow->lost_before = tp->lost;
	flow->marked_before = tp->delivered_ce;
	if (sk->sk_pacing_status == 0) /* SK_PACING_NONE: TCP paces by itself, unless fq does */
		sk->sk_pacing_status = 1;
	law_pace(sk, flow);
}

static __always_inline void law_acked(struct sock *sk, struct law_flow *flow, s64 rtt_us, bool limited)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const u64 now = tp->tcp_mstamp, rate = flow->law.rate;
	const u32 delivered = tp->delivered, lost = tp->lost, marked = tp->delivered_ce, most = tp->snd_cwnd_clamp;
	u64 window;

	flow->lost += (u32)(lost - flow->lost_before);
	flow->lost_before = lost;
	flow->marked += (u32)(marked - flow->marked_before);
	flow->marked_before = marked;
	if (flow->delivered < 10) /* the first window, which the kernel takes to be the program's limit */
		limited = false;
	if (limited)
		flow->idle_us += now - flow->seen_us;
	else
		flow->delivered += (u32)(delivered - flow->delivered_before);
	flow->delivered_before = delivered;
	flow->seen_us = now;
	if (!limited && rtt_us > 0)
		law_step(&flow->law, f64_mul(f64_from(now + flow->clock_us - flow->idle_us), LAW_MICROSECOND),
			 f64_mul(f64_from(rtt_us), LAW_MICROSECOND), LAW_BYTES(flow->delivered),
			 LAW_BYTES((u64)(tp->packets_out + tp->retrans_out - tp->sacked_out - tp->lost_out)),
			 LAW_BYTES(flow->lost), LAW_BYTES(flow->marked));
	if (flow->law.rate != rate)
		law_pace(sk, flow);
	window = f64_whole(f64_max(flow->law.window, f64_from(1)));
	tp->snd_cwnd = window < most ? window : most;
}
