package task

import (
	"testing"

	"loam/abi/linux"
	"loam/mem"
)

// use maps the given number of pages, in mappings of at most part pages, and writes to each page.
func (u *user) use(pages uint64) {
	const part = 512
	for ; pages > 0; pages -= min(pages, part) {
		n := min(pages, part)
		at := uint64(u.call(linux.SYS_MMAP, 0, n*mem.PageSize, linux.PROT_READ|linux.PROT_WRITE, linux.MAP_PRIVATE|linux.MAP_ANONYMOUS, 1<<64-1, 0))
		for i := range n {
			u.store32(at+i*mem.PageSize, 1)
		}
	}
}

// When memory runs out, the kernel kills a process that oom_score_adj does not protect. If all processes are
// protected, it kills the one that needs the page.
func TestMemoryRunsOut(t *testing.T) {
	const most = 8 * mem.BlockPages // memory of the machine, in pages
	for name, protected := range map[string]bool{"one is protected": false, "both are protected": true} {
		t.Run(name, func(t *testing.T) {
			protect := func(u *user) {
				fd := u.call(linux.SYS_OPEN, u.text(dataAt, "/proc/self/oom_score_adj"), linux.O_WRONLY)
				is(t, "oom_score_adj", u.call(linux.SYS_WRITE, uint64(fd), u.text(dataAt, "-1000"), 5), 5)
			}
			run(t, func(u *user) {
				protect(u)
				large := u.fork(1)
				is(t, "sleep", u.call(linux.SYS_NANOSLEEP, second(u, dataAt+64), 0), 0)
				small := u.fork(2)
				is(t, "wait", u.call(linux.SYS_WAIT4, uint64(small), dataAt, 0, 0), small)
				is(t, "the status of the small one", int64(u.load32(dataAt)), linux.SIGKILL)
				is(t, "the large one", u.call(linux.SYS_WAIT4, uint64(large), dataAt, linux.WNOHANG, 0), 0)
				exit(u, 0)
			}, func(u *user) {
				u.use(most * 6 / 10)
				u.call(linux.SYS_PAUSE)
			}, func(u *user) {
				if !protected {
					fd := u.call(linux.SYS_OPEN, u.text(dataAt, "/proc/self/oom_score_adj"), linux.O_WRONLY)
					is(t, "no protection", u.call(linux.SYS_WRITE, uint64(fd), u.text(dataAt, "0"), 1), 1)
				}
				u.use(most * 5 / 10)
				t.Error("there is more memory than there is")
				exit(u, 0)
			})
		})
	}
}
