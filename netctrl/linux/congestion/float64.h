/*
 * IEEE 754 doubles in integers: every operation is rounded to nearest, ties to even, as by hardware. A NaN is F64_NAN.
 * Takes u32, u64, s64 and bool; F64 stands before functions that are called. A call costs BPF some 10 ns where returns
 * are guarded (AMD, Safe RET).
 */
#define F64_SIGN (1ull << 63)
#define F64_INF (0x7ffull << 52)
#define F64_NAN (0xfffull << 51)
#define F64_FRACTION ((1ull << 52) - 1)

static __always_inline bool f64_isnan(u64 a)
{
	return (a & ~F64_SIGN) > F64_INF;
}

static __always_inline bool f64_isfinite(u64 a)
{
	return (a & F64_INF) != F64_INF;
}

static __always_inline u64 f64_neg(u64 a)
{
	return a ^ F64_SIGN;
}

static __always_inline bool f64_eq(u64 a, u64 b)
{
	return (a == b || ((a | b) & ~F64_SIGN) == 0) && !f64_isnan(a);
}

/* Bits in the order of their values, both zeros in the middle. */
static __always_inline s64 f64_order(u64 a)
{
	return a & F64_SIGN ? -(s64)(a & ~F64_SIGN) : (s64)a;
}

static __always_inline bool f64_lt(u64 a, u64 b)
{
	return f64_order(a) < f64_order(b) && !f64_isnan(a) && !f64_isnan(b);
}

static __always_inline bool f64_le(u64 a, u64 b)
{
	return f64_order(a) <= f64_order(b) && !f64_isnan(a) && !f64_isnan(b);
}

/* Python's: the first unless the second is better. */
static __always_inline u64 f64_min(u64 a, u64 b)
{
	return f64_lt(b, a) ? b : a;
}

static __always_inline u64 f64_max(u64 a, u64 b)
{
	return f64_lt(a, b) ? b : a;
}

/* Without branches, of which BPF's verifier follows all combinations: 1 where m isn't 0. */
static __always_inline u64 f64_any(u64 m)
{
	return (m | -m) >> 63;
}

/* Shift of an m below 2^63 to the right; the last bit tells whether any that is lost was set. */
static __always_inline u64 f64_shift(u64 m, u32 n)
{
	if (n > 63)
		n = 63;
	return m >> n | f64_any(m << 1 << (63 - n));
}

/* Places by which bit 62 is above the highest one that is set, of an m above 0 and below 2^63. */
static __always_inline u32 f64_places(u64 m)
{
	u32 n = (m - (1ull << 31)) >> 63 << 5, more;

	more = ((m << n) - (1ull << 47)) >> 63 << 4;
	n += more;
	more = ((m << n) - (1ull << 55)) >> 63 << 3;
	n += more;
	more = ((m << n) - (1ull << 59)) >> 63 << 2;
	n += more;
	more = ((m << n) - (1ull << 61)) >> 63 << 1;
	n += more;
	return n + (((m << n) - (1ull << 62)) >> 63);
}

/* m 2^(e - 1023 - 62), rounded; the last bit of m stands for all that are after it. */
static __always_inline u64 f64_round(u64 sign, s64 e, u64 m)
{
	u32 n;

	if (m == 0)
		return sign;
	if (m >> 63) {
		m = m >> 1 | (m & 1);
		e++;
	} else if (!(m >> 62)) {
		n = f64_places(m);
		m <<= n;
		e -= n;
	}
	if (e >= 0x7ff)
		return sign | F64_INF;
	if (e < 1) {
		m = f64_shift(m, e < -63 ? 63 : 1 - e);
		e = 1;
	}
	return sign | (((u64)(e - 1) << 52) + ((m + 511 + (m >> 10 & 1)) >> 10));
}

/* The magnitude's fraction with its leading bit 52, which is set here for subnormals too, and its exponent. */
static __always_inline u64 f64_parts(u64 a, s64 *e)
{
	u64 m = a & F64_FRACTION;
	u32 n;

	*e = a >> 52 & 0x7ff;
	if (*e)
		return m | 1ull << 52;
	if (m == 0)
		return 0;
	n = f64_places(m) - 10;
	*e = 1 - (s64)n;
	return m << n;
}

F64 u64 f64_add(u64 a, u64 b)
{
	u64 t, m, n;
	s64 e;
	u32 less;

	if ((a & ~F64_SIGN) < (b & ~F64_SIGN)) {
		t = a;
		a = b;
		b = t;
	}
	if (!f64_isfinite(a))
		return f64_isnan(a) || a == (b ^ F64_SIGN) ? F64_NAN : a;
	e = a >> 52 & 0x7ff;
	less = b >> 52 & 0x7ff;
	m = (a & F64_FRACTION) | (e ? 1ull << 52 : 0);
	n = (b & F64_FRACTION) | (less ? 1ull << 52 : 0);
	e += !e;
	n = f64_shift(n << 10, e - (less + !less));
	m <<= 10;
	if (!((a ^ b) >> 63))
		return f64_round(a & F64_SIGN, e, m + n);
	return f64_round(m == n ? 0 : a & F64_SIGN, e, m - n);
}

static __always_inline u64 f64_sub(u64 a, u64 b)
{
	return f64_add(a, b ^ F64_SIGN);
}

F64 u64 f64_mul(u64 a, u64 b)
{
	const u64 half = (1ull << 26) - 1, sign = (a ^ b) & F64_SIGN;
	u64 m, n, low, middle;
	s64 e, other;

	if (!f64_isfinite(a) || !f64_isfinite(b)) {
		if (f64_isnan(a) || f64_isnan(b) || !(a & ~F64_SIGN) || !(b & ~F64_SIGN))
			return F64_NAN;
		return sign | F64_INF;
	}
	m = f64_parts(a, &e);
	n = f64_parts(b, &other);
	low = (m & half) * (n & half);
	middle = (m >> 26) * (n & half) + (m & half) * (n >> 26) + (low >> 26);
	m = ((m >> 26) * (n >> 26) << 10) + (middle >> 16);
	return f64_round(sign, e + other - 1023, m | f64_any((middle & 0xffff) | (low & half)));
}

/* A digit of 32 bits of (rest 2^32) / d, and what is left; rest < d, and bit 63 of d is set. */
static __always_inline u64 f64_digit(u64 *rest, u64 d)
{
	const u64 high = d >> 32, low = d & 0xffffffff;
	u64 q = *rest / high, left = *rest - q * high;
	u32 turn;

	/* At most two too many (Knuth, The Art of Computer Programming 2, section 4.3.1, theorem B). */
	for (turn = 0; turn < 2 && !(left >> 32) && (q >> 32 || q * low > left << 32); turn++) {
		q--;
		left += high;
	}
	*rest = (*rest << 32) - q * d;
	return q;
}

F64 u64 f64_div(u64 a, u64 b)
{
	const u64 sign = (a ^ b) & F64_SIGN;
	u64 m, n, q;
	s64 e, other;

	if (f64_isnan(a) || f64_isnan(b))
		return F64_NAN;
	if (!f64_isfinite(a))
		return f64_isfinite(b) ? sign | F64_INF : F64_NAN;
	if (!f64_isfinite(b))
		return sign;
	m = f64_parts(a, &e) << 10;
	n = f64_parts(b, &other) << 11;
	if (n == 0)
		return m == 0 ? F64_NAN : sign | F64_INF;
	q = f64_digit(&m, n) << 32;
	q |= f64_digit(&m, n);
	return f64_round(sign, e - other + 1022, q | f64_any(m));
}

/* Bit by bit, as one does on paper. */
F64 u64 f64_sqrt(u64 a)
{
	u64 m, root = 0, t, fits;
	s64 e, place;

	if (!(a & ~F64_SIGN) || a == F64_INF)
		return a;
	if (a & F64_SIGN || f64_isnan(a))
		return F64_NAN;
	m = f64_parts(a, &e);
	if (!(e & 1))
		m <<= 1;
	m <<= 1;
	for (place = 53; place >= 0; place--) {
		t = 2 * root + (1ull << place);
		fits = (m - t) >> 63 ^ 1;
		__asm__("" : "+r"(fits)); /* no branch, of which there would be 2^54 paths */
		root += fits << place;
		m = (m - t * fits) << 1;
	}
	return f64_round(0, (e + 1023) >> 1, root << 9 | f64_any(m));
}

F64 u64 f64_floor(u64 a)
{
	const u32 e = a >> 52 & 0x7ff;
	u64 part;

	if (e >= 1075)
		return f64_isnan(a) ? F64_NAN : a;
	if (e < 1023)
		return !(a & ~F64_SIGN) ? a : a & F64_SIGN ? 0xbffull << 52 : 0;
	part = F64_FRACTION >> (e - 1023);
	return (a & F64_SIGN ? a + part : a) & ~part;
}

static __always_inline u64 f64_from(u64 n)
{
	return f64_round(0, 1023 + 62, n);
}

/* Of a number from 0 on, without its fraction; the greatest for what is more, 0 for what is none. */
F64 u64 f64_whole(u64 a)
{
	const u32 e = a >> 52 & 0x7ff;
	const u64 m = (a & F64_FRACTION) | 1ull << 52;

	if (a & F64_SIGN || f64_isnan(a) || e < 1023)
		return 0;
	return e > 1086 ? ~0ull : e < 1075 ? m >> (1075 - e) : m << (e - 1075);
}
