package probe

import "fmt"

// record is a message to the recorder: either results, or a checkpoint that covers all results sent before it.
type record struct {
	results *[]Result
	mark    *Checkpoint
}

// runRecorder passes results and checkpoints to the user in order. After an error it keeps draining the channel, so
// that no sender blocks.
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
