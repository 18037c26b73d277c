// Package complaint has a guest, and the gateway in the loam command, tell what an operator
// should know: a link that has failed, an address that is lost or that another host uses. Each is
// a line where the program's own complaints go, as all of Loam's are.
package complaint

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// Handler is a slog.Handler that writes warnings and errors, each by one call. It is used by
// value.
type Handler struct {
	To     io.Writer
	common string // attributes of all its lines
}

// Enabled implements slog.Handler.
func (h Handler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements slog.Handler: "loam: what: name value, name value".
func (h Handler) Handle(_ context.Context, r slog.Record) error {
	attributes := h.common
	r.Attrs(func(a slog.Attr) bool {
		attributes += said(a)
		return true
	})
	line := "loam: " + r.Message
	if attributes != "" {
		line += ": " + strings.TrimPrefix(attributes, ", ")
	}
	_, err := io.WriteString(h.To, line+"\n")
	return err
}

// said is an attribute behind others.
func said(a slog.Attr) string { return ", " + a.Key + " " + a.Value.String() }

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(all []slog.Attr) slog.Handler {
	for _, a := range all {
		h.common += said(a)
	}
	return h
}

// WithGroup implements slog.Handler. The stack has no groups.
func (h Handler) WithGroup(string) slog.Handler { return h }
