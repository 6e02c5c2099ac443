#define SEC(name) __attribute__((section(name), used))
#ifndef RATE_SAMPLE /* its place among the arguments of cong_control: 1 before Linux 6.10 */
#define RATE_SAMPLE 3
#endif
#ifndef TAI_AHEAD_S /* seconds by which this machine's TAI is ahead of UTC, which senders share */
#define TAI_AHEAD_S 0
#endif

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	char name[16];
};

struct {
	int (*type)[24]; /* BPF_MAP_TYPE_SK_STORAGE */
	int (*map_flags)[1]; /* BPF_F_NO_PREALLOC */
	int *key;
	struct law_flow *value;
} law_flows SEC(".maps");

static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static u64 (*bpf_ktime_get_tai_ns)(void) = (void *)208;

SEC("struct_ops/law_init")
void law_init(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct law_flow *flow = bpf_sk_storage_get(&law_flows, sk, 0, 1 /* BPF_SK_STORAGE_GET_F_CREATE */);

	if (flow)
		law_begin(sk, flow, bpf_ktime_get_tai_ns() / 1000 - TAI_AHEAD_S * 1000000ull, bpf_ktime_get_ns() / 1000);
}

SEC("struct_ops/law_control")
void law_control(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	const struct rate_sample *rs = (void *)ctx[RATE_SAMPLE];
	struct law_flow *flow = bpf_sk_storage_get(&law_flows, sk, 0, 0);

	if (flow)
		law_acked(sk, flow, rs->rtt_us, rs->is_app_limited);
}

SEC("struct_ops/law_threshold")
u32 law_threshold(u64 *ctx)
{
	return tcp_sk(ctx[0])->snd_ssthresh;
}

SEC("struct_ops/law_window")
u32 law_window(u64 *ctx)
{
	return tcp_sk(ctx[0])->snd_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops cc_@NAME@ = {
	.init = (void *)law_init,
	.ssthresh = (void *)law_threshold,
	.undo_cwnd = (void *)law_window,
	.cong_control = (void *)law_control,
	.name = "@NAME@",
};

char _license[] SEC("license") = "Dual BSD/GPL";
