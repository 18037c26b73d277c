package probe

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestStateIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.state")
	c := config(t, SYN, "10.0.0.0/24")
	want := State{Version: stateVersion, Questions: c.Fingerprint(), Seed: c.Seed, ResultsFile: "out.csv"}
	for k := range uint64(3) {
		f, got, ok, err := OpenState(path)
		if err != nil || ok != (k > 0) || ok && got != want {
			t.Fatalf("%+v, %v, %v; want %+v", got, ok, err, want)
		}
		for n := range k + 1 { // after each save, the state that was saved last is read back
			want.Checkpoint, want.Serial = Checkpoint{1, 77 * k, 333 + n}, want.Serial+1
			if err := f.Save(want); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f, _, _, err := OpenState(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Clear(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, got, ok, err := OpenState(path); ok || err != nil {
		t.Errorf("cleared: %+v, %v", got, err)
	}
}

// If the machine stops while a state is written, the previous state remains.
func TestTornState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.state")
	f, _, _, err := OpenState(path)
	if err != nil {
		t.Fatal(err)
	}
	for k := range uint64(3) {
		if err := f.Save(State{Seed: k}); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 20, stateLine - 1} { // cuts the slot that was written last, which is the first one
		torn := append([]byte(nil), whole...)
		clear(torn[cut : stateLine-1])
		if cut < stateLine-1 {
			if s, ok, err := newest(torn); err != nil || !ok || s.Seed != 1 {
				t.Errorf("cut at %d: %+v, %v, %v", cut, s, ok, err)
			}
		} else if s, ok, err := newest(torn); err != nil || !ok || s.Seed != 2 {
			t.Errorf("whole: %+v, %v, %v", s, ok, err)
		}
	}
}

// A state is rejected by a run with different questions, but accepted by one with a different rate.
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

func TestStateFails(t *testing.T) {
	if _, _, _, err := OpenState(filepath.Join(t.TempDir(), "none", "run.state")); err == nil {
		t.Error("opened in a folder that is not there")
	}
	path := filepath.Join(t.TempDir(), "results.csv")
	os.WriteFile(path, []byte("address,answer\n10.0.0.1,echo-reply\n"), 0o600)
	if _, _, _, err := OpenState(path); !errors.Is(err, ErrNotState) {
		t.Errorf("a file of results: %v", err)
	}
}

// FuzzState checks that no file causes a panic and an accepted state can be saved again.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":2,"serial":1,"questions":"00","seed":3,"checkpoint":{"Pass":1,"Next":77,"Sent":333}}`))
	f.Add(append(make([]byte, stateLine), `{"version":2,"serial":8}`...))
	f.Add([]byte(`{"version":1}`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, ok, err := newest(text); ok && err == nil && (s.Version != stateVersion || s.Checkpoint.Pass < 0) {
			t.Errorf("%+v", s)
		}
	})
}
