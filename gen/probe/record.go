package probe

import "fmt"

// record is a message to the recorder: results, or a place to which all results
// sent before belong.
type record struct {
	results *[]Result
	mark    *Checkpoint
}

// runRecorder passes results and checkpoints on, in the order in which they came.
// After an error it goes on emptying the channel, so that nobody waits for it.
func (r *run) runRecorder() {
	failed := false
	for m := range r.found {
		var err error
		switch {
		case failed:
		case m.mark != nil:
			err = r.Mark(*m.mark)
		case r.Record != nil:
			err = r.Record(*m.results)
		}
		if err != nil {
			failed = true
			r.cancel(fmt.Errorf("probe: results: %w", err))
		}
		if m.results != nil {
			clear(*m.results)
			*m.results = (*m.results)[:0]
			results.Put(m.results)
		}
	}
}
