// Package complaint formats warnings about the network, of a guest and of the loam command's gateway, for operators: a
// link has failed, an address is lost, or another host uses the same address. Each warning is one line on standard
// error, like all of Loam's messages.
package complaint

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// Handler is a slog.Handler that writes each warning and each error with a single Write call. Copies of a Handler are
// independent. It is safe for concurrent use if To is.
type Handler struct {
	To     io.Writer
	common string // attributes that WithAttrs added, formatted; every line ends with them
}

// Enabled implements slog.Handler.
func (h Handler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements slog.Handler. A line is "loam: what: name value, name value".
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

// said formats an attribute, with a separator before it.
func said(a slog.Attr) string { return ", " + a.Key + " " + a.Value.String() }

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(all []slog.Attr) slog.Handler {
	for _, a := range all {
		h.common += said(a)
	}
	return h
}

// WithGroup implements slog.Handler. It ignores groups, which the stack does not use.
func (h Handler) WithGroup(string) slog.Handler { return h }
