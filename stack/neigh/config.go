package neigh

import "time"

// Config holds what a Cache may be told. Zero means the default.
type Config struct {
	Size       int           // most entries, static ones not counted: 1024
	Retransmit time.Duration // between solicitations: 1 s (RFC 4861 RETRANS_TIMER)
	Attempts   int           // solicitations without an answer: 3 (MAX_MULTICAST_SOLICIT)
	Reachable  time.Duration // how long a confirmation is good on average: 30 s (REACHABLE_TIME)
	Delay      time.Duration // to wait for a confirmation from above: 5 s (DELAY_FIRST_PROBE_TIME)
	Negative   time.Duration // to remember that there was no answer: 3 s, at least Retransmit
	Forget     time.Duration // to keep an entry that nobody uses: 10 min
	Lock       time.Duration // to hold a MAC against a contradicting one: 1 s, as Linux's locktime
	Seed       uint64        // of the spread in time that keeps hosts from acting all at once
}

func (c Config) withDefaults() Config {
	setDefault(&c.Size, 1024)
	c.Size = max(c.Size, 1)
	setDefault(&c.Retransmit, time.Second)
	setDefault(&c.Attempts, 3)
	setDefault(&c.Reachable, 30*time.Second)
	setDefault(&c.Delay, 5*time.Second)
	setDefault(&c.Negative, 3*time.Second)
	setDefault(&c.Forget, 10*time.Minute)
	setDefault(&c.Lock, time.Second)
	// RFC 1122 section 2.3.2.1: at most one request a second for one address.
	c.Negative = max(c.Negative, c.Retransmit)
	return c
}

func setDefault[T int | time.Duration](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}
