// Package pressure chooses the process to kill when memory runs out and no page of the page cache can be freed. It is a
// pure function of a description of the processes, so that the policy can be read and tested in one place.
//
// The kernel reserves a part of memory for itself (kernel/user.go), because it needs pages to end a process.
package pressure

// Process is a candidate to be killed.
type Process struct {
	ID     int
	Pages  int64 // number of pages that the end of the process would free
	Adjust int   // oom_score_adj of proc_pid_oom_score_adj(5), from -1000 (never killed) to 1000
}

// Never is the value of Process.Adjust that protects a process.
const Never = -1000

// Choose returns the ID of the process with the highest score. The score of a process is its number of pages, plus
// Adjust thousandths of total, the number of pages of all memory. Among equal scores Choose returns the highest ID,
// which is the youngest process. ok is false if no process may be killed.
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
