package neigh

import "time"

// Config holds the settings of a Cache. Zero values select the defaults.
type Config struct {
	Size       int           // maximum number of entries without static ones: 1024
	Retransmit time.Duration // between solicitations: 1 s (RFC 4861 RETRANS_TIMER)
	Attempts   int           // solicitations without an answer before giving up: 3 (MAX_MULTICAST_SOLICIT)
	Reachable  time.Duration // average time that a confirmation is valid: 30 s (REACHABLE_TIME)
	Delay      time.Duration // time to wait for a confirmation by upper layers: 5 s (DELAY_FIRST_PROBE_TIME)
	Negative   time.Duration // time to remember a missing answer: 3 s, at least Retransmit
	Forget     time.Duration // time to keep an unused entry: 10 min
	Lock       time.Duration // time to keep a MAC against a contradicting one: 1 s, like Linux's locktime
	Seed       uint64        // seed of the random delays that keep hosts from acting simultaneously
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
	// RFC 1122 section 2.3.2.1: at most one request per second for one address.
	c.Negative = max(c.Negative, c.Retransmit)
	return c
}

func setDefault[T int | time.Duration](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}
