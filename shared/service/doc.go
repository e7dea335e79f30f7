// Package service is the life of a process, the same for every service of this repository: listeners with TLS, probes,
// metrics, logs and a graceful stop in bounded time.
//
// A program is one straight line:
//
//	kctx, err := cli.Parse(…)            // settings; help and usage errors are printed here
//	ctx, stop := service.Signals(ctx)    // SIGINT and SIGTERM end ctx, a second one ends the process
//	err = service.Run(ctx, service.Config{…})
//	os.Exit(cli.ExitCode(err))
//
// How Run stops:
//
//	ctx ends ─► readiness fails ─► StopDelay ─► Drain ─► listeners close, answers finish ─► tasks end ─► Run returns
//	                               └ still serving        └────────── at most StopTimeout ──────────┘
//
// Tasks outlive the requests, because requests may depend on them (a committer, a key set).
package service
