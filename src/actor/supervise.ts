import type { Log } from './log.js'

/** One part of the program: parts are started in order, and stopped in the opposite order. */
export interface Part {
  readonly name: string
  /** Starts the part. Where it rejects, the parts that are running already are stopped again. */
  start(): Promise<RunningPart>
}

export interface RunningPart {
  /** Resolves with a reason when the part ended without being stopped: its state may be wrong, so the program ends too. */
  readonly lost?: Promise<string>
  /** Finishes work in flight, then stops. */
  stop(): Promise<void>
}

export interface Supervised {
  /** Resolves with a reason as soon as any part is lost. */
  readonly lost: Promise<string>
  /** Stops everything, last started first. A second call waits for the first. */
  stop(): Promise<void>
}

/**
 * Starts `steps` one after the other; parts that are one step start at once, and the next step waits for all of them.
 * Stopping uses the same list backwards, so that both orders stay consistent. A part that is lost is reported, not
 * restarted: the state on disk is the truth, and a fresh process recovers from it. Where `end` fires, no further step is
 * begun: the parts that are up are stopped, and it rejects with the reason of `end`.
 */
export async function supervise(
  steps: readonly (Part | readonly Part[])[],
  log: Log,
  end?: AbortSignal,
): Promise<Supervised> {
  const up: { name: string; running: RunningPart }[] = []
  let report: (reason: string) => void
  const lost = new Promise<string>((resolve) => {
    report = resolve
  })
  let stopping: Promise<void> | undefined

  const takeDown = async (): Promise<void> => {
    for (const { name, running } of up.reverse()) {
      log.debug({ part: name }, 'stopping')
      await running
        .stop()
        .catch((error: unknown) =>
          log.error({ part: name, err: error }, 'a part of the program failed while it stopped'),
        )
    }
  }
  const bringUp = async (part: Part): Promise<void> => {
    const running = await part.start()
    up.push({ name: part.name, running })
    void running.lost?.then((reason) => {
      if (stopping === undefined) report(`${part.name}: ${reason}`)
    })
  }
  for (const step of steps) {
    const outcomes = await Promise.allSettled([step].flat().map(bringUp))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed === undefined && end?.aborted !== true) continue
    stopping = takeDown()
    await stopping
    throw failed === undefined ? end?.reason : failed.reason
  }
  return {
    lost,
    stop() {
      stopping ??= takeDown()
      return stopping
    },
  }
}
