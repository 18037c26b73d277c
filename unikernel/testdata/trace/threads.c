/* A program for a debugger: three threads, one after the other, and a variable to watch. */
#include <pthread.h>
#include <stdio.h>

int shared;

static int inner(int n)
{
	int r = n * 2;
	shared += r;
	return r;
}

static void *work(void *arg)
{
	return (void *)(long)inner((int)(long)arg + 1);
}

int main(void)
{
	int sum = 0;
	for (int i = 0; i < 3; i++) {
		pthread_t t;
		void *r;
		pthread_create(&t, 0, work, (void *)(long)i);
		pthread_join(t, &r);
		sum += (int)(long)r;
	}
	printf("sum %d shared %d\n", sum, shared);
	return sum & 7;
}
