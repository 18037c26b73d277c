package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"loam/internal/siphash"
)

// State is what a run leaves behind so that another goes on: a few hundred bytes
// of JSON, whatever the size of the run. Who has answered is not in it; that is
// read from the results (ReadAnswered).
type State struct {
	Version     int        `json:"version"`
	Questions   string     `json:"questions"` // a hash over what is asked and how: see Config.Fingerprint
	Seed        uint64     `json:"seed"`
	Checkpoint  Checkpoint `json:"checkpoint"`
	ResultsFile string     `json:"results,omitempty"` // where the results so far are
}

// stateVersion is that of this form of State.
const stateVersion = 1

// Errors of LoadState.
var (
	ErrNotState  = errors.New("is not the state of a probe run")
	ErrOtherRun  = errors.New("is the state of a run that asks something else")
	errNoVersion = errors.New("was written by another version of loam")
)

// maxState is more than any state takes.
const maxState = 1 << 16

// Fingerprint tells runs apart that ask different questions or in another order:
// only with the same one can a state be gone on with. Rate, retries and where the
// answers go may change.
func (c *Config) Fingerprint() string {
	d := c.withDefaults()
	text := fmt.Sprintf("%v %v %v %x seed %d shard %d of %d", d.Kind, d.Addresses.Ranges(), d.Ports, d.Payload, d.Seed, d.Shard, d.Shards)
	// The key is no secret here: the hash only has to differ.
	return fmt.Sprintf("%016x", siphash.Sum(siphash.Key{K0: stateVersion}, []byte(text)))
}

// SaveState replaces the file at path by the state: a reader, and a machine that
// stops at any moment, has the old one or the new one.
func SaveState(path string, s State) error {
	s.Version = stateVersion
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) // what is left of the attempt
	}
	return err
}

// LoadState reads the state at path; ok is false if there is none, and a run
// begins.
func LoadState(path string) (s State, ok bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	if s, err = parseState(text); err != nil {
		return s, false, fmt.Errorf("%s %w", path, err)
	}
	return s, true, nil
}

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
	case len(text) > maxState || json.Unmarshal(text, &s) != nil || s.Checkpoint.Pass < 0:
		return State{}, ErrNotState
	case s.Version != stateVersion:
		return State{}, errNoVersion
	}
	return s, nil
}
