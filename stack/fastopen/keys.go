package fastopen

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"loam/internal/siphash"
	"loam/wire"
)

// KeyLen is the size of a key in bytes, and cookieLen the size of a cookie, as on Linux.
const KeyLen, cookieLen = 16, 8

// Keys are the secret keys of a server. The first makes cookies. The second, if it is present, is an older one, whose cookies
// are still accepted. A Keys does not change.
type Keys struct {
	raw  []byte
	hash []siphash.Key
}

// NewKeys returns the keys in raw, which holds one or two of them. It returns nil if the size is another.
func NewKeys(raw []byte) *Keys {
	if len(raw) != KeyLen && len(raw) != 2*KeyLen {
		return nil
	}
	k := &Keys{raw: bytes.Clone(raw)}
	for ; len(raw) > 0; raw = raw[KeyLen:] {
		k.hash = append(k.hash, siphash.NewKey([KeyLen]byte(raw)))
	}
	return k
}

// Bytes returns a copy of the bytes that NewKeys was given.
func (k *Keys) Bytes() []byte { return bytes.Clone(k.raw) }

// Cookie returns the cookie of a client at a server.
func (k *Keys) Cookie(client, server netip.Addr) wire.FastOpenCookie {
	return cookie(k.hash[0], client, server)
}

// Verdict is the result of checking a cookie.
type Verdict uint8

// Values of Verdict.
const (
	Wrong Verdict = iota // the cookie is not valid
	Valid                // the cookie was made by the first key
	Older                // the cookie was made by the second key: the client should get a new one
)

// Check checks the cookie that a client has sent to a server.
func (k *Keys) Check(c *wire.FastOpenCookie, client, server netip.Addr) Verdict {
	for i, key := range k.hash {
		if cookie(key, client, server) == *c {
			return Valid + Verdict(i)
		}
	}
	return Wrong
}

func cookie(key siphash.Key, client, server netip.Addr) wire.FastOpenCookie {
	a, b := client.As16(), server.As16()
	sum := siphash.Sum(key, append(a[:], b[:]...))
	c, _ := wire.NewFastOpenCookie(binary.LittleEndian.AppendUint64(make([]byte, 0, cookieLen), sum))
	return c
}
