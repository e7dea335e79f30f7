// Package service runs the process of a service: signals, probes, metrics, logs, and a graceful stop in bounded time.
// The listeners are those of package httpserver.
//
// A program has these steps:
//
//	kctx, err := cli.Parse(…)            // settings; help and usage errors are printed here
//	ctx, stop := service.Signals(ctx)    // SIGINT and SIGTERM end ctx, a second one ends the process
//	err = service.Run(ctx, service.Config{…})
//	os.Exit(cli.ExitCode(err))
//
// Run stops in this order:
//
//	ctx ends ─► readiness fails ─► StopDelay ─► Drain ─► listeners close, answers finish ─► tasks end ─► Run returns
//	                               └ still serving        └────────── at most StopTimeout ──────────┘
//
// Tasks end after the requests, because requests may depend on them, as on a committer or a key set.
package service
