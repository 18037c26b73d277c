// Prints whether /proc/cpuinfo agrees with the instruction CPUID. The output is the same on every processor.
#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char text[1 << 20];

// value returns the value of a key in the first entry, without spaces around it.
static char *value(const char *key) {
	static char line[1 << 14];
	for (char *s = text; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : 0) {
		size_t n = strlen(key);
		if (strncmp(s, key, n) || (s[n] != '\t' && s[n] != ' ')) continue;
		s = strchr(s, ':') + 1;
		s += strspn(s, " ");
		snprintf(line, sizeof line, "%.*s", (int)strcspn(s, "\n"), s);
		return line;
	}
	return "";
}

// flag reports whether the list of flags has a name.
static int flag(const char *name) {
	char list[1 << 14], want[64];
	snprintf(list, sizeof list, " %s ", value("flags"));
	snprintf(want, sizeof want, " %s ", name);
	return strstr(list, want) != 0;
}

static void agree(const char *name, unsigned leaf, int reg, int bit) {
	unsigned r[4] = {0};
	__get_cpuid_count(leaf, 0, &r[0], &r[1], &r[2], &r[3]);
	printf("%s: %d\n", name, flag(name) == (r[reg] >> bit & 1));
}

int main(void) {
	FILE *f = fopen("/proc/cpuinfo", "r");
	fread(text, 1, sizeof text - 1, f);
	unsigned r[4], brand[13] = {0};
	int n = 0;
	for (char *s = text; (s = strstr(s, "processor\t")); s++) n++;
	printf("CPUs: %d\n", n == sysconf(_SC_NPROCESSORS_ONLN));
	__cpuid(0, r[0], r[1], r[2], r[3]);
	unsigned vendor[4] = {r[1], r[3], r[2]};
	printf("vendor_id: %d\ncpuid level: %d\n", !strcmp(value("vendor_id"), (char *)vendor), atoi(value("cpuid level")) == r[0]);
	for (int i = 0; i < 3; i++) __cpuid(0x80000002 + i, brand[4 * i], brand[4 * i + 1], brand[4 * i + 2], brand[4 * i + 3]);
	printf("model name: %d\n", strlen(value("model name")) > 0 && strstr((char *)brand, value("model name")) != 0);
	__cpuid(1, r[0], r[1], r[2], r[3]);
	printf("stepping: %d\nclflush size: %d\n", atoi(value("stepping")) == (r[0] & 15), atoi(value("clflush size")) == (r[1] >> 8 & 255) * 8);
	printf("cpu MHz: %d\nbogomips: %d\n", atof(value("cpu MHz")) > 10, atof(value("bogomips")) > 10);
	agree("sse2", 1, 3, 26), agree("ssse3", 1, 2, 9), agree("sse4_2", 1, 2, 20), agree("aes", 1, 2, 25), agree("avx", 1, 2, 28);
	agree("fma", 1, 2, 12), agree("rdrand", 1, 2, 30), agree("popcnt", 1, 2, 23), agree("hypervisor", 1, 2, 31);
	agree("avx2", 7, 1, 5), agree("bmi2", 7, 1, 8), agree("erms", 7, 1, 9), agree("sha_ni", 7, 1, 29), agree("fsrm", 7, 3, 4);
	agree("lm", 0x80000001, 3, 29), agree("abm", 0x80000001, 2, 5);
}
