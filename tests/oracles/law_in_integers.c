/* A law in integers and its arithmetic, compared bit by bit: compiled after their text. */
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

void replay(struct law *state, u64 n, const u64 (*samples)[5], u64 *rates)
{
	for (u64 i = 0; i < n; i++)
		rates[i] = law_step(state, samples[i][0], samples[i][1], samples[i][2], samples[i][3], samples[i][4]);
}
