/* A law in integers, its arithmetic and a flow under it, compared bit by bit: compiled after their text. */
void operate(u64 operation, u64 n, const u64 *a, const u64 *b, u64 *out)
{
	for (u64 i = 0; i < n; i++)
		switch (operation) {
		case 0: out[i] = f64_add(a[i], b[i]); break;
		case 1: out[i] = f64_sub(a[i], b[i]); break;
		case 2: out[i] = f64_mul(a[i], b[i]); break;
		case 3: out[i] = f64_div(a[i], b[i]); break;
		case 4: out[i] = f64_sqrt(a[i]); break;
		case 5: out[i] = f64_floor(a[i]); break;
		case 6: out[i] = f64_lt(a[i], b[i]); break;
		case 7: out[i] = f64_le(a[i], b[i]); break;
		case 8: out[i] = f64_eq(a[i], b[i]); break;
		case 9: out[i] = f64_from(a[i]); break;
		case 10: out[i] = f64_whole(a[i]); break;
		case 11: out[i] = f64_min(a[i], b[i]); break;
		case 12: out[i] = f64_max(a[i], b[i]); break;
		}
}

void begin(struct law *state)
{
	*state = law_start;
}

void replay(struct law *state, u64 n, const u64 (*samples)[6], u64 *rates)
{
	for (u64 i = 0; i < n; i++)
		rates[i] = law_step(state, samples[i][0], samples[i][1], samples[i][2], samples[i][3], samples[i][4],
				    samples[i][5]);
}

u64 flow_size(void)
{
	return sizeof(struct law_flow);
}

void flow_begin(struct sock *sk, struct law_flow *flow, u64 shared_us, u64 now_us)
{
	law_begin(sk, flow, shared_us, now_us);
}

void flow_acked(struct sock *sk, struct law_flow *flow, s64 rtt_us, bool limited)
{
	law_acked(sk, flow, rtt_us, limited);
}
