package boot

import (
	"bytes"
	"errors"
	"strings"
)

// Config is the configuration that the loam command passes to a program in a virtual machine. Its encoded form is the
// first module of the boot protocol: a sequence of words. A word is a letter, which is its kind, then text, then a NUL.
type Config struct {
	Args []string // the first element is the name of the program
	Env  []string // "KEY=VALUE"
}

// DefaultConfig is the encoded Config for a machine that the loam command did not start. It has no arguments except the
// program's name; a network card, if there is one, is configured by DHCP. Package unikernel/guest defines LOAM_GUEST; a
// test compares the two.
const DefaultConfig = "aprogram\x00eLOAM_GUEST=host machine=yes\nlink kind=card name=eth0 mtu=1500\n\x00"

// First bytes of the words of an encoded Config. They distinguish arguments from environment variables.
const (
	WordArg = 'a'
	WordEnv = 'e'
)

// ErrNUL is returned by Encode for a word that contains a NUL. Neither execve(2) nor a shell accepts such words.
var ErrNUL = errors.New("boot: an argument or variable contains a NUL")

// Encode returns the encoded form of c, which the guest reads, or ErrNUL.
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

// NextWord splits the first word off an encoded Config. It returns the word's kind, its text including the NUL, and
// the rest. ok is false if config does not start with a complete word.
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
