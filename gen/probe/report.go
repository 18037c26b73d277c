package probe

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Rate returns the average rate in probes per second while the run was sending.
func (s *Summary) Rate() float64 { return perSecond(s.Sent, s.Sending) }

func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// Text returns a summary in a few lines of text.
func (s *Summary) Text() string {
	var b strings.Builder
	rest, share, before := s.Asked-s.Known, 0.0, ""
	if rest > 0 {
		share = 100 * float64(s.Found()) / float64(rest)
	}
	if s.Known > 0 {
		before = fmt.Sprintf(" of the rest; %d have answered before", s.Known)
	}
	fmt.Fprintf(&b, "%d asked, %d found (%.4g %%%s)\n", s.Asked, s.Found(), share, before)
	passes := "passes"
	if len(s.PassSent) == 1 {
		passes = "pass"
	}
	fmt.Fprintf(&b, "%d probes in %d %s, %.0f a second; %.1f s in all\n", s.Sent, len(s.PassSent), passes, s.Rate(), s.Elapsed.Seconds())
	var kinds []string
	for a, n := range s.Answers {
		if n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %v", n, Answer(a)))
		}
	}
	if s.Duplicates > 0 {
		kinds = append(kinds, fmt.Sprintf("%d duplicates", s.Duplicates))
	}
	if s.Forged > 0 {
		kinds = append(kinds, fmt.Sprintf("%d forged", s.Forged))
	}
	if len(kinds) > 0 {
		fmt.Fprintf(&b, "answers: %s\n", strings.Join(kinds, ", "))
	}
	if s.RTT.Count > 0 {
		fmt.Fprintf(&b, "round trips: %v least, %v mean, %v most\n", s.RTT.Min.Round(time.Microsecond), s.RTT.Mean.Round(time.Microsecond), s.RTT.Max.Round(time.Microsecond))
	}
	if lost := s.RingDrops + s.LinkDrops; lost > 0 {
		fmt.Fprintf(&b, "lost on this machine: %d in our rings, %d by the interface; slowed down %d times\n", s.RingDrops, s.LinkDrops, s.Slowed)
	}
	return b.String()
}

// MarshalJSON implements json.Marshaler.
func (s Summary) MarshalJSON() ([]byte, error) {
	answers := map[string]uint64{}
	for a, n := range s.Answers {
		answers[Answer(a).String()] = n
	}
	return json.Marshal(struct {
		Asked      uint64            `json:"asked"`
		Known      uint64            `json:"answered_before"`
		Found      uint64            `json:"found"`
		Sent       uint64            `json:"sent"`
		Passes     []uint64          `json:"passes"`
		Rate       float64           `json:"probes_per_second"`
		Sending    float64           `json:"sending_seconds"`
		Elapsed    float64           `json:"elapsed_seconds"`
		Answers    map[string]uint64 `json:"answers"`
		Duplicates uint64            `json:"duplicates"`
		Forged     uint64            `json:"forged"`
		Malformed  uint64            `json:"malformed"`
		Foreign    uint64            `json:"foreign"`
		Resets     uint64            `json:"resets_sent"`
		RingDrops  uint64            `json:"ring_drops"`
		LinkDrops  uint64            `json:"link_drops"`
		Slowed     uint64            `json:"slowed"`
		RTTs       uint64            `json:"round_trips"`
		RTTMin     float64           `json:"rtt_min_ms"`
		RTTMean    float64           `json:"rtt_mean_ms"`
		RTTMax     float64           `json:"rtt_max_ms"`
		Finished   bool              `json:"finished"`
	}{
		s.Asked, s.Known, s.Found(), s.Sent, s.PassSent, s.Rate(), s.Sending.Seconds(), s.Elapsed.Seconds(), answers,
		s.Duplicates, s.Forged, s.Malformed, s.Foreign, s.Resets, s.RingDrops, s.LinkDrops, s.Slowed,
		s.RTT.Count, milli(s.RTT.Min), milli(s.RTT.Mean), milli(s.RTT.Max), s.Finished,
	})
}

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
