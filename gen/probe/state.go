package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"loam/internal/siphash"
)

// State is what a run leaves behind so that another goes on: a few hundred bytes
// of JSON, whatever the size of the run. Who has answered is not in it; that is
// read from the results (ReadAnswered).
type State struct {
	Version     int        `json:"version"`
	Serial      uint64     `json:"serial"`    // counts the times that it was saved
	Questions   string     `json:"questions"` // a hash over what is asked and how: see Config.Fingerprint
	Seed        uint64     `json:"seed"`
	Checkpoint  Checkpoint `json:"checkpoint"`
	ResultsFile string     `json:"results,omitempty"` // where the results so far are
}

// stateVersion is that of this form of State.
const stateVersion = 2

// Errors of OpenState and of Matches.
var (
	ErrNotState  = errors.New("is not the state of a probe run")
	ErrOtherRun  = errors.New("is the state of a run that asks something else")
	errNoVersion = errors.New("was written by another version of loam")
)

// StateFile keeps a State. It is opened once, so that a run which has given up its
// privileges can go on saving. Two lines of stateLine bytes take turns, and the
// one with the higher serial holds: a machine that stops while one is written has
// the other.
type StateFile struct {
	file  *os.File
	saved State
}

// stateLine is more than any state takes; the rest is spaces.
const stateLine = 4096

// Fingerprint tells runs apart that ask different questions or in another order:
// only with the same one can a state be gone on with. Rate, retries and where the
// answers go may change.
func (c *Config) Fingerprint() string {
	d := c.withDefaults()
	text := fmt.Sprintf("%v %v %v %x seed %d shard %d of %d", d.Kind, d.Addresses.Ranges(), d.Ports, d.Payload, d.Seed, d.Shard, d.Shards)
	// The key is no secret here: the hash only has to differ.
	return fmt.Sprintf("%016x", siphash.Sum(siphash.Key{K0: stateVersion}, []byte(text)))
}

// OpenState opens the file at path, or makes it. ok is false if there is no state
// in it, and a run begins.
func OpenState(path string) (f *StateFile, s State, ok bool, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, s, false, err
	}
	text, err := io.ReadAll(io.LimitReader(file, 2*stateLine+1))
	if err == nil {
		s, ok, err = newest(text)
	}
	if err != nil {
		file.Close()
		return nil, s, false, fmt.Errorf("%s %w", path, err)
	}
	return &StateFile{file, s}, s, ok, nil
}

// newest is the state that holds in a file.
func newest(text []byte) (s State, ok bool, err error) {
	if len(text) > 2*stateLine {
		return s, false, ErrNotState
	}
	for ; len(text) > 0; text = text[min(len(text), stateLine):] {
		line := bytes.Trim(text[:min(len(text), stateLine)], "\x00 \n")
		one, failed := parseState(line)
		switch {
		case len(line) == 0: // never written
		case failed != nil:
			err = failed
		case !ok || one.Serial > s.Serial:
			s, ok = one, true
		}
	}
	if ok {
		err = nil // the other line was never finished
	}
	return s, ok, err
}

// Save writes s in the place of the older of the two lines.
func (f *StateFile) Save(s State) error {
	s.Version, s.Serial = stateVersion, f.saved.Serial+1
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(text) >= stateLine {
		return fmt.Errorf("a state of %d bytes: the name of the results is too long", len(text))
	}
	line := append(text, bytes.Repeat([]byte(" "), stateLine-1-len(text))...)
	if _, err := f.file.WriteAt(append(line, '\n'), int64((s.Serial-1)%2)*stateLine); err != nil {
		return err
	}
	f.saved = s
	return f.file.Sync()
}

// Clear forgets the state: the run has come to its end.
func (f *StateFile) Clear() error { return f.file.Truncate(0) }

// Close closes the file.
func (f *StateFile) Close() error { return f.file.Close() }

// Matches is an error unless the state belongs to the questions of c, whose Seed
// is that of the state.
func (s *State) Matches(c *Config) error {
	if s.Questions != c.Fingerprint() {
		return ErrOtherRun
	}
	return nil
}

func parseState(text []byte) (s State, err error) {
	switch {
	case json.Unmarshal(text, &s) != nil || s.Checkpoint.Pass < 0:
		return State{}, ErrNotState
	case s.Version != stateVersion:
		return State{}, errNoVersion
	}
	return s, nil
}
