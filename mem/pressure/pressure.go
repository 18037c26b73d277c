// Package pressure chooses the process to kill when memory runs out and no page of the page cache can be freed. It is a
// pure function of a description of the processes, so that the policy can be read and tested in one place.
//
// The kernel reserves a part of memory for itself (kernel/user.go), because it needs pages to end a process.
package pressure

import "slices"

// Process is a candidate to be killed.
type Process struct {
	ID     int
	User   uint32
	Pages  int64 // number of pages that the end of the process would free, with its part of the kernel's heap
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
		score := p.score(total)
		if !ok || score > most || score == most && p.ID > id {
			id, most, ok = p.ID, score, true
		}
	}
	return id, ok
}

// score returns the score of a process: see Choose.
func (p Process) score(total int64) int64 { return p.Pages + int64(p.Adjust)*total/1000 }

// ChooseSome returns the process that Choose returns, and then other processes of its user, until they have a number of pages
// together, at most limit of them. Each of the others has at least half of the first one's score. If crowded is set,
// Choose sees only the processes of the ordinary user whose processes have most pages together, if these are more than the
// pages of root: many small processes of a user then do not cause the end of a larger one of another user.
func ChooseSome(total int64, processes []Process, pages int64, limit int, crowded bool) (ids []int) {
	if crowded {
		processes = ofLargestUser(processes)
	}
	first, ok := Choose(total, processes)
	if !ok {
		return nil
	}
	processes = slices.Clone(processes)
	slices.SortFunc(processes, func(a, b Process) int {
		switch x, y := a.score(total), b.score(total); {
		case x != y:
			return int(min(max(y-x, -1), 1))
		default:
			return b.ID - a.ID
		}
	})
	var victim Process
	for _, p := range processes {
		switch {
		case p.ID == first:
			victim = p
		case len(ids) == 0 || p.Adjust <= Never || p.User != victim.User || p.score(total) < victim.score(total)/2:
			continue
		}
		if ids, pages = append(ids, p.ID), pages-p.Pages; pages <= 0 || len(ids) == limit {
			break
		}
	}
	return ids
}

// ofLargestUser returns the processes of one user if that is an ordinary user whose processes have most pages together, and all
// processes otherwise. Protected processes do not count.
func ofLargestUser(processes []Process) []Process {
	sums := map[uint32]int64{}
	largest := uint32(0)
	for _, p := range processes {
		if p.Adjust > Never {
			sums[p.User] += p.Pages
		}
	}
	for user, sum := range sums {
		if sum > sums[largest] || sum == sums[largest] && user > largest {
			largest = user
		}
	}
	if largest == 0 {
		return processes
	}
	return slices.DeleteFunc(slices.Clone(processes), func(p Process) bool { return p.User != largest })
}
