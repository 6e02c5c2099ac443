/* clang -O2 -g -target bpf -c FILE -o law.o && bpftool struct_ops register law.o */
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
typedef s64 int64_t;
typedef _Bool bool;
#define true 1
#define false 0
#define noinline __attribute__((noinline))
#define __always_inline inline __attribute__((always_inline))
#define F64 noinline /* global: verified once, not at each call */
#define tcp_sk(sk) ((struct tcp_sock *)(sk))

/* Of the kernel's structures the fields that are used, which the loader finds by their names. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	u32 sk_pacing_status;
};
struct tcp_sock {
	u64 tcp_mstamp;
	u32 snd_cwnd, snd_cwnd_clamp, snd_ssthresh, mss_cache, packets_out, retrans_out, sacked_out, lost_out, delivered, delivered_ce, lost;
};
struct rate_sample {
	long rtt_us;
	bool is_app_limited;
};
#pragma clang attribute pop
