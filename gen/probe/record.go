package probe

import "fmt"

// record is a message to the recorder goroutine. It contains either results, or a checkpoint that covers all results in
// earlier messages.
type record struct {
	results *[]Result
	mark    *Checkpoint
}

// runRecorder calls Config.Record and Config.Mark with results and checkpoints, in order. After an error it continues
// to receive and discards the messages, so that no goroutine blocks in sending one.
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
