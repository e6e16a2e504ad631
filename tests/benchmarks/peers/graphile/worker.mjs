// The graphile-worker program, with batches: it fetches many jobs at once, and completes many at once.
// https://worker.graphile.org/docs/performance
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { run } from "graphile-worker";

const note = (what, number = 0) =>
  appendFileSync(process.env.BENCH_JOURNAL, `${what} ${number} ${(Date.now() / 1000).toFixed(6)} ${process.pid}\n`);

const runner = await run({
  connectionString: process.env.BENCH_DATABASE,
  noHandleSignals: false,
  preset: {
    worker: {
      concurrentJobs: Number(process.env.BENCH_JOBS_AT_ONCE),
      localQueue: { size: 2 * Number(process.env.BENCH_JOBS_AT_ONCE) },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
  taskList: {
    bench: async ({ number, milliseconds }) => {
      note("begin", number);
      await setTimeout(milliseconds);
      note("end", number);
    },
  },
});
// After the job was deleted, which is how this system stores a success.
runner.events.on("job:complete", ({ job }) => note("stored", job.payload.number));
note("ready");
await runner.promise;
