//go:build linux

package session

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"

	"loam/gen/probe"
)

// files are where the results go, and where it is written down how far the run is.
// All of it belongs to the engine's recorder while the run lasts.
type files struct {
	results *probe.Writer
	file    *os.File // that results goes to, or nil
	state   *probe.StateFile
	note    probe.State // what is saved, but for the checkpoint
}

// openFiles opens them, and has c go on from the state if there is one.
func (o *Options) openFiles(c *probe.Config) (f *files, err error) {
	f = &files{}
	if o.StateFile == "" {
		return f, o.openResults(f, false)
	}
	if o.OutputFile == "" {
		return nil, &Refusal{"a run that is to be resumed has to find its results again", "give it a file for them: -o FILE"}
	}
	state, before, ok, err := probe.OpenState(o.StateFile)
	if err != nil {
		return nil, &Refusal{err.Error(), "name another file with --resume, or delete this one to begin anew"}
	}
	f.state = state
	if ok {
		err = o.goOn(c, before)
	}
	if err == nil {
		f.note, err = o.newState(c)
	}
	if err == nil {
		err = o.openResults(f, ok)
	}
	if err != nil {
		state.Close()
		return nil, err
	}
	return f, nil
}

// newState is what is to be saved of this run.
func (o *Options) newState(c *probe.Config) (s probe.State, err error) {
	s = probe.State{Questions: c.Fingerprint(), Seed: c.Seed}
	s.ResultsFile, err = filepath.Abs(o.OutputFile)
	return s, err
}

// goOn sets c up to go on from a state.
func (o *Options) goOn(c *probe.Config, s probe.State) error {
	c.Seed = s.Seed
	if err := s.Matches(c); err != nil {
		return &Refusal{o.StateFile + " " + err.Error(), "give the same targets and kind again, or another file with --resume"}
	}
	here, err := filepath.Abs(o.OutputFile)
	if err != nil {
		return err
	}
	if here != s.ResultsFile {
		return &Refusal{fmt.Sprintf("the results so far are in %s", s.ResultsFile), "go on in that file: -o " + s.ResultsFile}
	}
	in, err := os.OpenFile(here, os.O_RDWR, 0)
	if err != nil {
		return &Refusal{err.Error(), "the results so far are needed; delete " + o.StateFile + " to begin anew"}
	}
	count := 0
	whole, err := probe.ReadAnswered(in, o.Format, c.Kind, func(netip.Addr, uint16) { count++ })
	if err == nil {
		err = in.Truncate(whole) // what was cut off in the middle of a line
	}
	if err != nil {
		in.Close()
		return &Refusal{here + ", " + err.Error(), "give the same --output as before"}
	}
	c.From = &s.Checkpoint
	c.Answered = func(yield func(netip.Addr, uint16)) {
		defer in.Close()
		if _, err := in.Seek(0, io.SeekStart); err == nil {
			probe.ReadAnswered(in, o.Format, c.Kind, yield) // has been read before, without an error
		}
	}
	o.note(fmt.Sprintf("going on in pass %d, with %d answers so far", s.Checkpoint.Pass+1, count))
	return nil
}

// openResults opens the writer of results; more says that there are some already.
func (o *Options) openResults(f *files, more bool) (err error) {
	out := o.Output
	if o.OutputFile != "" {
		flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if more {
			flags = os.O_WRONLY | os.O_APPEND
		}
		if f.file, err = os.OpenFile(o.OutputFile, flags, 0o644); err != nil {
			return &Refusal{err.Error(), "name a file that can be written with -o"}
		}
		out = f.file
	}
	if out == nil {
		out = io.Discard
	}
	f.results = probe.NewWriter(out, o.Format, o.Fields, !more)
	return nil
}

// record takes results; it is probe.Config.Record.
func (f *files) record(rs []probe.Result) error { return f.results.Write(rs) }

// mark is probe.Config.Mark: what was found before goes to the disk first.
func (f *files) mark(c probe.Checkpoint) error {
	if err := f.results.Flush(); err != nil || f.state == nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.note.Checkpoint = c
	return f.state.Save(f.note)
}

// finish writes the rest. A run that came to its end leaves no state.
func (f *files) finish(sum *probe.Summary) error {
	err := f.results.Flush()
	if f.state != nil && sum.Finished {
		err = errors.Join(err, f.state.Clear())
	}
	return errors.Join(err, f.close())
}

func (f *files) close() (err error) {
	if f.file != nil {
		err = f.file.Close()
	}
	if f.state != nil {
		err = errors.Join(err, f.state.Close())
	}
	return err
}
