package boot

import (
	"errors"
	"slices"
	"testing"
)

func decode(b []byte) (c Config) {
	for {
		kind, text, rest, ok := NextWord(b)
		if !ok {
			return c
		}
		word := string(text[:len(text)-1])
		switch kind {
		case WordArg:
			c.Args = append(c.Args, word)
		case WordEnv:
			c.Env = append(c.Env, word)
		}
		b = rest
	}
}

func TestConfig(t *testing.T) {
	want := Config{Args: []string{"prog", "", "-x=ä"}, Env: []string{"A=", "HOME=/ x"}}
	b, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got := decode(b); !slices.Equal(got.Args, want.Args) || !slices.Equal(got.Env, want.Env) {
		t.Errorf("%q", got)
	}
	if _, err := (Config{Args: []string{"a\x00b"}}).Encode(); !errors.Is(err, ErrNUL) {
		t.Errorf("error %v", err)
	}
}

// A truncated or damaged configuration ends early.
func FuzzNextWord(f *testing.F) {
	f.Add([]byte("aprog\x00eA=1\x00"))
	f.Add([]byte("\x00\x00a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for {
			_, text, rest, ok := NextWord(b)
			if !ok {
				return
			}
			if len(text) == 0 || text[len(text)-1] != 0 || len(rest) >= len(b) {
				t.Fatalf("%q, %q", text, rest)
			}
			b = rest
		}
	})
}
