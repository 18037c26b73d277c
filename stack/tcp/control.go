package tcp

import (
	"loam/stack/tcp/congestion"
	"loam/stack/tcp/sequence"
)

// Seq is a sequence number.
type Seq = sequence.Seq

// Congestion control: see package congestion.
type (
	Congestion = congestion.Control
	Model      = congestion.Model
	Window     = congestion.Window
	Ack        = congestion.Ack
	Sample     = congestion.Sample
	Loss       = congestion.Loss
	BBRInfo    = congestion.BBRInfo
)
