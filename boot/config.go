package boot

import (
	"bytes"
	"errors"
	"strings"
)

// Config is what the loam command gives to a program in a virtual machine. It is
// the first module beside the program. In its encoded form each word ends at a
// NUL and begins with a letter that says what it is.
type Config struct {
	Args []string // the first is the name of the program
	Env  []string // "KEY=VALUE"
}

// DefaultConfig is the encoded form for a machine that was not started by the loam
// command: no arguments, and a network card, if there is one, that asks DHCP. The
// variable is package unikernel/guest's, which a test compares.
const DefaultConfig = "aprogram\x00eLOAM_GUEST=host machine=yes\nlink kind=card name=eth0 mtu=1500\n\x00"

// What a word is.
const (
	WordArg = 'a'
	WordEnv = 'e'
)

// ErrNUL is what Encode returns for words that cannot be told apart. Neither
// execve(2) nor a shell takes them.
var ErrNUL = errors.New("boot: an argument or variable contains a NUL")

// Encode is the form that the guest reads.
func (c Config) Encode() ([]byte, error) {
	var b bytes.Buffer
	for _, list := range []struct {
		kind  byte
		words []string
	}{{WordArg, c.Args}, {WordEnv, c.Env}} {
		for _, w := range list.words {
			if strings.IndexByte(w, 0) >= 0 {
				return nil, ErrNUL
			}
			b.WriteByte(list.kind)
			b.WriteString(w)
			b.WriteByte(0)
		}
	}
	return b.Bytes(), nil
}

// NextWord takes the first word from an encoded Config: its kind, its text with
// the NUL, and what follows. Anything else than a whole word ends it.
func NextWord(config []byte) (kind byte, text, rest []byte, ok bool) {
	for i, c := range config {
		if c == 0 {
			if i == 0 {
				return 0, nil, nil, false
			}
			return config[0], config[1 : i+1], config[i+1:], true
		}
	}
	return 0, nil, nil, false
}
