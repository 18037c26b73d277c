package probe

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestStateIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.state")
	if _, ok, err := LoadState(path); ok || err != nil {
		t.Errorf("before the first run: %v, %v", ok, err)
	}
	c := config(t, SYN, "10.0.0.0/24")
	want := State{Questions: c.Fingerprint(), Seed: c.Seed, Checkpoint: Checkpoint{1, 77, 333}, ResultsFile: "out.csv"}
	for range 2 { // the second replaces the first
		if err := SaveState(path, want); err != nil {
			t.Fatal(err)
		}
	}
	got, ok, err := LoadState(path)
	want.Version = stateVersion
	if err != nil || !ok || got != want {
		t.Errorf("%+v, %v, %v; want %+v", got, ok, err, want)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("left beside the state: %v, %v", files, err)
	}
}

// A run that asks something else is refused; one that only goes faster is not.
func TestStateMatches(t *testing.T) {
	s := State{Questions: config(t, SYN, "10.0.0.0/24").Fingerprint()}
	for why, c := range map[string]struct {
		change func(*Config)
		fits   bool
	}{
		"the same":      {func(*Config) {}, true},
		"another rate":  {func(c *Config) { c.Rate, c.Retries = 7, 7 }, true},
		"another kind":  {func(c *Config) { c.Kind = UDP }, false},
		"more ports":    {func(c *Config) { c.Ports = append(c.Ports, 80) }, false},
		"another order": {func(c *Config) { c.Seed++ }, false},
		"another shard": {func(c *Config) { c.Shards = 2 }, false},
		"other targets": {func(c *Config) { c.Addresses = addresses(t, "10.0.0.0/23") }, false},
	} {
		cfg := config(t, SYN, "10.0.0.0/24")
		c.change(cfg)
		if err := s.Matches(cfg); (err == nil) != c.fits || err != nil && !errors.Is(err, ErrOtherRun) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestSaveStateFails(t *testing.T) {
	if err := SaveState(filepath.Join(t.TempDir(), "none", "run.state"), State{}); err == nil {
		t.Error("saved into a folder that is not there")
	}
}

// FuzzState: no file panics, and one that is accepted can be saved again.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"questions":"00","seed":3,"checkpoint":{"Pass":1,"Next":77,"Sent":333}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := parseState(text); err == nil && (s.Version != stateVersion || s.Checkpoint.Pass < 0) {
			t.Errorf("%+v", s)
		}
	})
}
