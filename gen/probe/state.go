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

// State is the data that a run saves so that another run can resume it: a few hundred bytes of JSON, whatever the size
// of the run. It does not contain which questions have been answered; ReadAnswered finds that in the results.
type State struct {
	Version     int        `json:"version"`
	Serial      uint64     `json:"serial"`    // number of times that the state has been saved
	Questions   string     `json:"questions"` // hash of the questions (addresses and ports) and their order: see Config.Fingerprint
	Seed        uint64     `json:"seed"`
	Checkpoint  Checkpoint `json:"checkpoint"`
	ResultsFile string     `json:"results,omitempty"` // path of the file with the results of the run
}

// stateVersion is the version of the State format.
const stateVersion = 2

// Errors of OpenState and State.Matches.
var (
	ErrNotState  = errors.New("is not the state of a probe run")
	ErrOtherRun  = errors.New("is the state of a run that asks something else")
	errNoVersion = errors.New("was written by another version of loam")
)

// StateFile stores a State in a file. It is opened only once, so that a run can save its state after it has given up
// its privileges. The file has two slots of stateLine bytes, which are written alternately. The valid slot with the
// higher serial number is the current one. If the machine stops during a write, the other slot is still valid.
type StateFile struct {
	file  *os.File
	saved State
}

// stateLine is the size of a slot in bytes. Every state is smaller; the rest of a slot is filled with spaces.
const stateLine = 4096

// Fingerprint returns a hash of the questions and their order. A saved state can be resumed only by a run with the same
// fingerprint. The rate, the number of retries and the output are not part of it, and may differ.
func (c *Config) Fingerprint() string {
	d := c.withDefaults()
	text := fmt.Sprintf("%v %v %v %x seed %d shard %d of %d", d.Kind, d.Addresses.Ranges(), d.Ports, d.Payload, d.Seed, d.Shard, d.Shards)
	// The key need not be secret: the hash only detects differences.
	return fmt.Sprintf("%016x", siphash.Sum(siphash.Key{K0: stateVersion}, []byte(text)))
}

// OpenState opens or creates the file at path. ok is false if the file contains no state; the run then starts from the
// beginning.
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

// newest returns the latest valid state in a file.
func newest(text []byte) (s State, ok bool, err error) {
	if len(text) > 2*stateLine {
		return s, false, ErrNotState
	}
	for ; len(text) > 0; text = text[min(len(text), stateLine):] {
		line := bytes.Trim(text[:min(len(text), stateLine)], "\x00 \n")
		one, failed := parseState(line)
		switch {
		case len(line) == 0: // the slot was never written
		case failed != nil:
			err = failed
		case !ok || one.Serial > s.Serial:
			s, ok = one, true
		}
	}
	if ok {
		err = nil // the other slot is invalid because its write was interrupted
	}
	return s, ok, err
}

// Save writes s to the older slot.
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

// Clear removes the state from the file. It is called when a run has finished.
func (f *StateFile) Clear() error { return f.file.Truncate(0) }

// Close closes the file.
func (f *StateFile) Close() error { return f.file.Close() }

// Matches returns an error unless c asks the same questions as the run that saved the state. c.Seed must already be set
// to the seed in the state.
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
