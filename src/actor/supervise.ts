import type { Log } from './log.js'

/** One part of the program: brought up in order, taken down in the opposite order. */
export interface Part {
  readonly name: string
  /** Brings the part up. Rejecting stops the start; what is already up is taken down again. */
  start(): Promise<RunningPart>
}

export interface RunningPart {
  /** Resolves with a reason when the part ended unasked: its state may be wrong, so the program ends too. */
  readonly lost?: Promise<string>
  /** Finishes work in flight and leaves. */
  stop(): Promise<void>
}

export interface Supervised {
  /** Resolves with a reason as soon as any part is lost. */
  readonly lost: Promise<string>
  /** Takes everything down, last started first. A second call joins the first. */
  stop(): Promise<void>
}

/**
 * Starts `parts` one after the other. One list serves both directions, so that the orders cannot drift apart. A part that is
 * lost is reported, not restarted: the state on disk is the truth, and a fresh process recovers from it.
 */
export async function supervise(parts: readonly Part[], log: Log): Promise<Supervised> {
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
        .catch((error: unknown) => log.error({ part: name, err: error }, 'did not stop cleanly'))
    }
  }
  for (const part of parts) {
    try {
      const running = await part.start()
      up.push({ name: part.name, running })
      void running.lost?.then((reason) => {
        if (stopping === undefined) report(`${part.name}: ${reason}`)
      })
    } catch (error) {
      stopping = takeDown()
      await stopping
      throw error
    }
  }
  return {
    lost,
    stop() {
      stopping ??= takeDown()
      return stopping
    },
  }
}
