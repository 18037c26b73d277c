package tcp

import "loam/wire"

// CookieSYNACK fills out the answer to syn without keeping anything: its
// sequence number is the cookie, and what the options of the SYN said is in its
// timestamp. minute is a counter that goes up once a minute.
func (k *Key) CookieSYNACK(now Time, minute uint32, cfg *Config, id ID, mss int, syn *Segment, out *wire.TCP) {
}

// CookieAccept makes a connection of the acknowledgment of such a SYN-ACK. It is
// nil if ack carries no cookie of this minute or the one before. The owner then
// gives ack to Receive.
func (k *Key) CookieAccept(now Time, minute uint32, cfg *Config, id ID, mss int, ack *Segment, out Outgoing, in Incoming) *Conn {
	return nil
}
