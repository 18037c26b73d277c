package show

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Prometheus is a View that serves the latest state at /metrics over HTTP.
type Prometheus struct {
	server *http.Server
	ended  chan error // capacity of one: the goroutine that serves requests sends its final error

	mu   sync.Mutex // guards the field last
	last State
}

// NewPrometheus starts to listen on an address such as "127.0.0.1:9100".
func NewPrometheus(address string) (*Prometheus, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &Prometheus{ended: make(chan error, 1)}
	registry := prometheus.NewRegistry()
	registry.MustRegister(p)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { p.ended <- p.server.Serve(l) }()
	return p, nil
}

// Update implements View.
func (p *Prometheus) Update(s State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = s
}

// Finish implements View. It stops the server.
func (p *Prometheus) Finish(Result) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.server.Shutdown(ctx)
	if err := <-p.ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Metrics, named by the conventions of Prometheus: base units, and _total for counters.
var (
	sentFrames  = prometheus.NewDesc("loam_gen_sent_frames_total", "Frames handed over.", []string{"stream"}, nil)
	sentBytes   = prometheus.NewDesc("loam_gen_sent_bytes_total", "Bytes in them, with FCS.", []string{"stream"}, nil)
	received    = prometheus.NewDesc("loam_gen_received_frames_total", "Tagged frames received, duplicates included.", []string{"run", "flow"}, nil)
	lost        = prometheus.NewDesc("loam_gen_lost_frames_total", "Frames that did not arrive, up to the latest that did.", []string{"run", "flow"}, nil)
	duplicates  = prometheus.NewDesc("loam_gen_duplicate_frames_total", "Frames that arrived again.", []string{"run", "flow"}, nil)
	reordered   = prometheus.NewDesc("loam_gen_reordered_frames_total", "Frames that arrived after a later one.", []string{"run", "flow"}, nil)
	other       = prometheus.NewDesc("loam_gen_other_frames_total", "Frames received without a tag.", nil, nil)
	ringDropped = prometheus.NewDesc("loam_gen_ring_dropped_frames_total", "Frames that found no room in the sink's own ring.", nil, nil)
	before      = prometheus.NewDesc("loam_gen_before_frames_total", "Numbers below the first that arrived: frames that are lost, or were sent before the sink began.", []string{"run", "flow"}, nil)
	latency     = prometheus.NewDesc("loam_gen_latency_seconds", "Time from sending to receiving.", nil, nil)
)

// Describe implements prometheus.Collector.
func (p *Prometheus) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sentFrames, sentBytes, received, lost, duplicates, reordered, other, ringDropped, before, latency} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p *Prometheus) Collect(to chan<- prometheus.Metric) {
	p.mu.Lock()
	s := p.last
	p.mu.Unlock()
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	if s.Sent != nil {
		for _, f := range s.Sent.Streams {
			counter(sentFrames, f.Frames, f.Name)
			counter(sentBytes, f.Bytes, f.Name)
		}
	}
	r := s.Received
	if r == nil {
		return
	}
	for _, f := range r.Flows {
		run, id := fmt.Sprintf("%04x", f.Run), f.ID.String()
		counter(received, f.Received, run, id)
		counter(lost, f.Lost, run, id)
		counter(duplicates, f.Duplicates, run, id)
		counter(reordered, f.Reordered, run, id)
		counter(before, f.Before, run, id)
	}
	counter(other, r.Other)
	counter(ringDropped, r.Dropped)
	if l := r.Total.Latency; l.Count > 0 {
		buckets := make(map[float64]uint64, len(l.Buckets))
		for _, b := range l.Buckets {
			buckets[b.Bound.Seconds()] = b.Count
		}
		to <- prometheus.MustNewConstHistogram(latency, uint64(l.Count), l.Mean.Seconds()*float64(l.Count), buckets)
	}
}
