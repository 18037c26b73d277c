// Package pressure decides what happens when memory runs out: whose pages are
// evicted, which request is refused, which process is killed. It is one pure
// function over a description of the system, so that the policy can be read and tested in one place.
//
// The order is: grant while more than the reserve is free; evict clean pages of files; write dirty ones back;
// refuse a request that may fail; kill the process whose end frees most. The reserve is for the
// kernel, which needs pages to free pages.
package pressure

// Memory describes the state of the system, in pages.
type Memory struct {
	Total   int64
	Free    int64
	Reserve int64 // for requests with Request.Kernel
	Clean   int64 // clean pages of files, not in use by copies
	Dirty   int64 // dirty pages of files with storage to write to
}

// Request is a wish for pages.
type Request struct {
	Pages   int64
	Kernel  bool // may use the reserve
	MayFail bool // a system call that can return ENOMEM, as opposed to a fault
}

// Process is a candidate to be killed.
type Process struct {
	ID     int
	Pages  int64 // that its end would free
	Adjust int   // oom_score_adj, from -1000 (never) to 1000
	Init   bool  // never
	Dying  bool  // was killed already, and has not freed its memory yet
}

// Action is the step that the caller has to take before it tries again.
type Action uint8

// Actions.
const (
	Grant     Action = iota // allocate
	Evict                   // evict Decision.Pages clean pages
	WriteBack               // write Decision.Pages dirty pages back
	Refuse                  // fail with ENOMEM
	Wait                    // a killed process is about to free its memory
	Kill                    // kill Decision.Process with SIGKILL
)

// Decision is an action with its object.
type Decision struct {
	Action  Action
	Pages   int64
	Process int
}

// batch is the number of pages that is evicted or written at least, so that the decision is rare.
const batch = 256

// Decide returns what to do about a request.
func Decide(m Memory, q Request, processes []Process) Decision {
	available := m.Free
	if !q.Kernel {
		available -= m.Reserve
	}
	need := q.Pages - available
	switch {
	case need <= 0:
		return Decision{Action: Grant}
	case m.Clean > 0:
		return Decision{Action: Evict, Pages: min(max(need, batch), m.Clean)}
	case m.Dirty > 0:
		return Decision{Action: WriteBack, Pages: min(max(need, batch), m.Dirty)}
	case q.MayFail:
		return Decision{Action: Refuse}
	}
	return choose(m, processes)
}

// choose picks the process with the highest score: its pages, adjusted by thousandths of all memory, as
// proc_pid_oom_score_adj(5) describes. With equal scores the youngest goes.
func choose(m Memory, processes []Process) Decision {
	best, most := Decision{Action: Refuse}, int64(0)
	for _, p := range processes {
		if p.Dying {
			return Decision{Action: Wait}
		}
		if p.Init || p.Adjust <= -1000 {
			continue
		}
		score := p.Pages + int64(p.Adjust)*m.Total/1000
		if best.Action != Kill || score > most || score == most && p.ID > best.Process {
			best, most = Decision{Action: Kill, Process: p.ID}, score
		}
	}
	return best
}
