/* A plugin of QEMU that counts the instructions of a machine with one CPU, for each function of the kernel, and in one number
 * for all programs. Functions are known if the kernel is an ELF file with symbols. Addresses of the lower half belong to
 * programs.
 *
 * counter.so,out=PATH: when the file PATH.start exists, the plugin begins to count. The file has two numbers, N and M. When
 * programs have executed N instructions, all counters become zero. After M more instructions, the plugin writes PATH: a line with
 * the number, the number of calls and the name of each function. The name of the programs is ring3. A call is an execution of the
 * lowest known address of a function. N and M are exceeded by what the machine executes in 10 ms. A block of instructions without a jump counts in whole,
 * also if an exception ends it early.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
extern const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int op, void *counter, uint64_t n);
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { ADD = 0, FUNCTIONS = 1 << 16 };

struct function {
	const char *name; /* belongs to QEMU, which keeps one copy */
	uint64_t count;
	/* executions of the block with the lowest address that was translated. Too many: a loop returns to that block; a higher block was
	   translated first; the block was translated again. Too few: a block in another page, or after a jump, is an entry of its own. */
	uint64_t calls;
	uint64_t low; /* lowest known address; 0: none is known */
};

static struct function functions[FUNCTIONS], programs = { "ring3" }, others = { "others" };
static char out[512];

/* counterOf returns the counter of the function with a name: it searches a hash table, whose keys are addresses of names. */
static struct function *counterOf(const char *name)
{
	if (!name || !*name)
		return &others;
	for (size_t i = ((uintptr_t)name >> 2) * 2654435761u, tries = 0; tries < FUNCTIONS; i++, tries++) {
		struct function *f = &functions[i % FUNCTIONS];
		if (!f->name)
			f->name = name;
		if (f->name == name)
			return f;
	}
	return &others;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
	struct function *f = qemu_plugin_insn_vaddr(first) >> 47 ? counterOf(qemu_plugin_insn_symbol(first)) : &programs;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD, &f->count, qemu_plugin_tb_n_insns(tb));
	if (!f->low || qemu_plugin_insn_vaddr(first) <= f->low) {
		f->low = qemu_plugin_insn_vaddr(first);
		qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD, &f->calls, 1);
	}
}

static uint64_t total(void)
{
	uint64_t n = programs.count + others.count;
	for (int i = 0; i < FUNCTIONS; i++)
		n += functions[i].count;
	return n;
}

static void print(FILE *file, const struct function *f)
{
	if (f->count)
		fprintf(file, "%llu %llu %s\n", (unsigned long long)f->count, (unsigned long long)f->calls, f->name);
}

static void *control(void *unused)
{
	char path[600];
	snprintf(path, sizeof path, "%s.start", out);
	while (access(path, F_OK))
		usleep(10000);
	unsigned long long skip = 0, length = 0;
	FILE *start = fopen(path, "r");
	if (!start || fscanf(start, "%llu %llu", &skip, &length) != 2)
		return NULL;
	fclose(start);
	programs.count = 0;
	while (*(volatile uint64_t *)&programs.count < skip)
		usleep(10000);
	for (int i = 0; i < FUNCTIONS; i++)
		functions[i].count = functions[i].calls = 0;
	programs.count = others.count = 0;
	while (total() < length)
		usleep(10000);
	snprintf(path, sizeof path, "%s.part", out);
	FILE *file = fopen(path, "w");
	if (!file)
		return NULL;
	print(file, &programs);
	print(file, &others);
	for (int i = 0; i < FUNCTIONS; i++)
		print(file, &functions[i]);
	fclose(file);
	rename(path, out);
	return NULL;
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	pthread_t thread;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4) && strlen(argv[i]) < sizeof out)
			strcpy(out, argv[i] + 4);
		else
			return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return pthread_create(&thread, NULL, control, NULL);
}
