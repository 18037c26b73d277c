//go:build linux

package session

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"loam/gen/probe"
)

// files holds the open files of a run, for its results and its state. During the run they belong to the recorder
// goroutine of package probe.
type files struct {
	results *probe.Writer
	file    *os.File // the file that results writes to, or nil
	state   *probe.StateFile
	note    probe.State // the state to save; its checkpoint is added before it is saved
	filter  probe.Filter
}

// openFiles opens the files. If the state file contains a saved state, openFiles configures c to resume from it.
func (o *Options) openFiles(c *probe.Config) (f *files, err error) {
	f = &files{filter: o.Filter}
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

// newState returns the initial state of this run.
func (o *Options) newState(c *probe.Config) (s probe.State, err error) {
	s = probe.State{Questions: c.Fingerprint(), Seed: c.Seed}
	s.ResultsFile, err = filepath.Abs(o.OutputFile)
	return s, err
}

// goOn configures c to resume from a saved state.
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
		err = in.Truncate(whole) // remove a last line that was cut off
	}
	if err != nil {
		in.Close()
		return &Refusal{here + ", " + err.Error(), "give the same --output as before"}
	}
	c.From = &s.Checkpoint
	c.Answered = func(yield func(netip.Addr, uint16)) {
		defer in.Close()
		if _, err := in.Seek(0, io.SeekStart); err == nil {
			probe.ReadAnswered(in, o.Format, c.Kind, yield) // errors are ignored: the same text was parsed before
		}
	}
	o.note(fmt.Sprintf("going on in pass %d, with %d answers so far", s.Checkpoint.Pass+1, count))
	return nil
}

// openResults opens the file or stream for results. more means that the file already contains results of an earlier
// run.
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

// record implements probe.Config.Record. It removes results that the filter rejects from rs.
func (f *files) record(rs []probe.Result) error {
	return f.results.Write(slices.DeleteFunc(rs, func(r probe.Result) bool { return !f.filter.Match(&r) }))
}

// mark implements probe.Config.Mark. It writes the results to disk (fsync) before it saves the checkpoint.
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

// finish writes buffered results and closes the files. If the run has finished, finish also clears the saved state.
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
