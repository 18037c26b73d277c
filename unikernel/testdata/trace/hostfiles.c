// Libraries and data that the C library opens at run time: libgcc_s.so.1 when a thread ends, modules of NSS, converters of
// iconv, the locale C.UTF-8.
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

static void cleanup(void *arg) { printf("cleanup %s\n", (char *)arg); }

static void *cancelled(void *arg) {
	pthread_cleanup_push(cleanup, "of the cancelled thread");
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return arg;
}

static void *exits(void *arg) {
	pthread_cleanup_push(cleanup, "at exit");
	pthread_exit(arg);
	pthread_cleanup_pop(0);
}

int main(void) {
	pthread_t t;
	void *result;
	pthread_create(&t, NULL, cancelled, NULL);
	pthread_cancel(t);
	pthread_join(t, &result);
	printf("cancelled: %d\n", result == PTHREAD_CANCELED);
	pthread_create(&t, NULL, exits, "x");
	pthread_join(t, &result);
	printf("exited: %s\n", (char *)result);

	struct passwd *p = getpwnam("nobody");
	printf("nobody: %s\n", p ? p->pw_dir : "none");
	printf("nobody else: %d\n", getpwnam("does-not-exist") != NULL);
	struct servent *s = getservbyname("https", "tcp");
	printf("https: %d\n", s ? s->s_port : -1);

	const char *charsets[] = {"ISO-8859-15", "UTF-16LE", "EUC-JP", "KOI8-R", "NONE"};
	for (int i = 0; i < 5; i++) {
		char in[] = "a\xe2\x82\xac\xd0\x9f", out[32];
		char *from = in, *to = out;
		size_t n = strlen(in), room = sizeof out;
		iconv_t c = iconv_open(charsets[i], "UTF-8");
		if (c == (iconv_t)-1) {
			printf("%s: not supported\n", charsets[i]);
			continue;
		}
		size_t r = iconv(c, &from, &n, &to, &room);
		printf("%s: %zd, %zu left:", charsets[i], (ssize_t)r, n);
		for (char *b = out; b < to; b++)
			printf(" %02x", (unsigned char)*b);
		printf("\n");
		iconv_close(c);
	}
	printf("locale: %s\n", setlocale(LC_ALL, "C.UTF-8") ? "C.UTF-8" : "none");
	wchar_t w;
	printf("%d bytes\n", mbtowc(&w, "\xe2\x82\xac", 3));
	return 0;
}
