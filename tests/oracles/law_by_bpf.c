/* A law in BPF over a batch of samples, for a comparison bit by bit: compiled after its text. */
enum { BATCH = 1000 };
struct {
	u64 spent; /* ns */
	u64 samples[BATCH][6], rates[BATCH];
	struct law state;
} batch;

static u64 (*now_ns)(void) = (void *)5;
static long (*repeat)(u32 times, void *step, void *with, u64 flags) = (void *)181;

static long one(u64 k, void *with)
{
	const u64 *seen = batch.samples[k];

	if (k < BATCH)
		batch.rates[k] = law_step(&batch.state, seen[0], seen[1], seen[2], seen[3], seen[4], seen[5]);
	return 0;
}

__attribute__((section("syscall"), used))
int replay(void *with)
{
	const u64 begun = now_ns();

	repeat(BATCH, one, 0, 0);
	batch.spent += now_ns() - begun;
	return 0;
}

char _license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
