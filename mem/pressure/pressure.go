// Package pressure decides which process is killed when memory runs out and the page cache has no page left to give. It is a
// pure function over a description of the processes, so that the policy can be read and tested in one place.
//
// The kernel's core keeps a part of memory for itself (kernel/user.go): the kernel needs pages to end a process.
package pressure

// Process is a candidate to be killed.
type Process struct {
	ID     int
	Pages  int64 // that its end would free
	Adjust int   // oom_score_adj of proc_pid_oom_score_adj(5), from -1000 (never killed) to 1000
}

// Never is the value of Process.Adjust that protects a process.
const Never = -1000

// Choose returns the ID of the process with the highest score: its pages, plus Adjust thousandths of all memory (total, in
// pages). With equal scores the youngest is chosen, the one with the highest ID. ok is false if
// no process may be killed.
func Choose(total int64, processes []Process) (id int, ok bool) {
	most := int64(0)
	for _, p := range processes {
		if p.Adjust <= Never {
			continue
		}
		score := p.Pages + int64(p.Adjust)*total/1000
		if !ok || score > most || score == most && p.ID > id {
			id, most, ok = p.ID, score, true
		}
	}
	return id, ok
}
