// Package control lets other programs change the rates of a run over HTTP.
//
//	GET /rate                                       the current rates, as JSON
//	PUT /rate {"scale": 0.5}                        half of every rate; 0 pauses, 1 restores
//	PUT /rate {"rate": "20kpps"}                    a rate for all streams
//	PUT /rate {"rate": "2%", "stream": "voice"}     a rate for one stream
//
// The response to a change contains the new rates. A rate with which the run cannot send is rejected with status 400
// and a line of text. If the run is not sending, the status is 409. There is no authentication, so the server should
// listen on a loopback address. A web page in a browser cannot send a PUT request to another site without that site's
// consent.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"loam/gen"
	"loam/gen/pace"
	"loam/gen/show"
)

// Server serves the requests for one run. It implements show.View, so that it stops when the run ends.
type Server struct {
	control *gen.Control
	server  *http.Server
	ended   chan error // capacity of one: the goroutine that serves requests sends its final error
}

// Listen starts to serve on an address such as "127.0.0.1:9101".
func Listen(address string, c *gen.Control) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{control: c, ended: make(chan error, 1)}
	s.server = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second}
	go func() { s.ended <- s.server.Serve(l) }()
	return s, nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rate", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, nil) })
	mux.HandleFunc("PUT /rate", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, s.change(http.MaxBytesReader(w, r.Body, maxRequest)))
	})
	return mux
}

// maxRequest is the largest request body in bytes.
const maxRequest = 1 << 16

// request is the body of a PUT request. Either Scale or Rate is present.
type request struct {
	Scale  *float64 `json:"scale"`
	Rate   *string  `json:"rate"`
	Stream string   `json:"stream"` // name of the stream whose rate Rate sets; "": all streams
}

// change applies the request that body contains.
func (s *Server) change(body io.Reader) error {
	var r request
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return fmt.Errorf("the request is not understood: %w: send {\"scale\": NUMBER} or {\"rate\": \"RATE\"}", err)
	}
	switch {
	case (r.Scale == nil) == (r.Rate == nil) || r.Scale != nil && r.Stream != "":
		return errors.New(`send either {"scale": NUMBER}, or {"rate": "RATE"} with or without a "stream"`)
	case r.Scale != nil:
		return s.control.Scale(*r.Scale)
	}
	rate, err := pace.ParseRate(*r.Rate)
	if err != nil {
		return err
	}
	return s.control.SetRate(r.Stream, rate)
}

// answer writes the current rates as the response or, if err is not nil, the error.
func (s *Server) answer(w http.ResponseWriter, err error) {
	var state gen.State
	if err == nil {
		state, err = s.control.State()
	}
	switch {
	case errors.Is(err, gen.ErrNotRunning):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(state) // an error means that the client has closed the connection
	}
}

// Update implements show.View.
func (s *Server) Update(show.State) {}

// Finish implements show.View. It stops the server.
func (s *Server) Finish(show.Result) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.server.Shutdown(ctx)
	if err := <-s.ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
