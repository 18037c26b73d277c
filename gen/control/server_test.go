package control

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loam/gen"
	"loam/gen/pace"
	"loam/gen/show"
)

// running returns the Control of a run with two streams, which rejects rates of a million frames per second or more.
func running() *gen.Control {
	c := gen.NewControl()
	c.Begin("lo", []gen.Stream{{Name: "voice", Rate: pace.Rate{PerSecond: 1000}}, {Name: "bulk"}}, func(r *gen.Rates) error {
		if r.Of[0].PerSecond >= 1_000_000 {
			return io.ErrShortBuffer
		}
		return nil
	})
	return c
}

func TestRequests(t *testing.T) {
	s := &Server{control: running()}
	for _, c := range []struct {
		method, body string
		status       int
		want         string
	}{
		{"GET", "", 200, `{"scale":1,"streams":[{"name":"voice","rate":"1kpps"},{"name":"bulk","rate":"max"}]}`},
		{"PUT", `{"scale": 0.5}`, 200, `{"scale":0.5,"streams":[{"name":"voice","rate":"1kpps"},{"name":"bulk","rate":"max"}]}`},
		{"PUT", `{"rate": "2Mbps", "stream": "bulk"}`, 200, `{"scale":0.5,"streams":[{"name":"voice","rate":"1kpps"},{"name":"bulk","rate":"2Mbps"}]}`},
		{"PUT", `{"rate": "5kpps"}`, 200, `{"scale":0.5,"streams":[{"name":"voice","rate":"5kpps"},{"name":"bulk","rate":"5kpps"}]}`},
		{"PUT", `{"rate": "9Mpps"}`, 400, "short buffer"},
		{"PUT", `{"rate": "fast"}`, 400, `"fast" is not a rate; allowed: `},
		{"PUT", `{"rate": "1kpps", "stream": "x"}`, 400, `there is no stream "x"`},
		{"PUT", `{"rate": "1kpps", "scale": 1}`, 400, `send either {"scale": NUMBER}, or `},
		{"PUT", `{"scale": 1, "stream": "voice"}`, 400, `send either `},
		{"PUT", `{}`, 400, `send either `},
		{"PUT", `{"scale": -1}`, 400, `a scale of -1; allowed: `},
		{"PUT", `{"speed": 1}`, 400, `the request is not understood: json: unknown field "speed": send `},
		{"PUT", `half`, 400, `the request is not understood: `},
		{"PUT", strings.Repeat(" ", maxRequest+1), 400, `the request is not understood: http: request body too large`},
		{"POST", `{"scale": 1}`, 405, "Method Not Allowed"},
	} {
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, httptest.NewRequest(c.method, "/rate", strings.NewReader(c.body)))
		if w.Code != c.status || !strings.HasPrefix(w.Body.String(), c.want) || strings.Count(w.Body.String(), "\n") != 1 {
			t.Errorf("%s %.40s: %d %s\nwant %d %s", c.method, c.body, w.Code, w.Body, c.status, c.want)
		}
	}
	s.control.End()
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest("PUT", "/rate", strings.NewReader(`{"scale": 1}`)))
	if w.Code != http.StatusConflict {
		t.Errorf("after the run: %d %s", w.Code, w.Body)
	}
}

// The server answers over TCP until Finish is called.
func TestListenAndFinish(t *testing.T) {
	s, err := Listen("127.0.0.1:0", running())
	if err == nil {
		err = s.Finish(show.Result{})
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := Listen("nowhere:x", nil); err == nil {
		t.Error("a bad address is accepted")
	}
}
