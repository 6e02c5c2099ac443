/* Too large for the socket's own place, which holds a pointer: 0 where there was no memory, and the window stays. */
static struct law_flow *law_flow_of(const struct sock *sk)
{
	return *(struct law_flow **)inet_csk_ca(sk);
}

static void law_init(struct sock *sk)
{
	struct law_flow *flow = kzalloc(sizeof(*flow), GFP_ATOMIC);

	*(struct law_flow **)inet_csk_ca(sk) = flow;
	if (flow)
		law_begin(sk, flow, ktime_get_real_ns() / 1000, ktime_get_ns() / 1000);
}

static void law_release(struct sock *sk)
{
	kfree(law_flow_of(sk));
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void law_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
static void law_control(struct sock *sk, const struct rate_sample *rs)
#endif
{
	struct law_flow *flow = law_flow_of(sk);

	if (flow)
		law_acked(sk, flow, rs->rtt_us, rs->is_app_limited);
}

static u32 law_threshold(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static u32 law_window(struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

static struct tcp_congestion_ops law_ops __read_mostly = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "@NAME@",
	.owner = THIS_MODULE,
	.init = law_init,
	.release = law_release,
	.ssthresh = law_threshold,
	.undo_cwnd = law_window,
	.cong_control = law_control,
};

static int __init law_register(void)
{
	return tcp_register_congestion_control(&law_ops);
}

static void __exit law_unregister(void)
{
	tcp_unregister_congestion_control(&law_ops);
}

module_init(law_register);
module_exit(law_unregister);
MODULE_DESCRIPTION("Pacing to a queue of the own rate");
MODULE_LICENSE("Dual BSD/GPL");
