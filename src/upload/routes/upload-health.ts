import type { Clock } from '../../actor/clock.js'
import { leavingReason } from '../../actor/stopping.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { type Health, lifeOf } from '../../http/life.js'
import type { CreditsPort } from '../../payment/credits-port.js'
import { jsonAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { UploadRoute } from '../requests/upload-route.js'

export interface UploadHealthParts {
  readonly clock: Clock
  readonly startedMs: number
  /** Height of the chain's tip; undefined before the first node has reported it. */
  readonly height: () => number | undefined
  /** An answer: the disk has no room for uploads. */
  readonly noRoomFor: () => UploadAnswer | undefined
  readonly storeRefusal: () => Refusal | undefined
  /** What does not get on, although uploads are taken. Absent: that is not known here. */
  readonly warnings?: () => readonly string[]
  /** Absent: nobody is paid here. */
  readonly credits?: Pick<CreditsPort, 'price'>
}

/** Shortest time between two requests to the payment service. */
const askEachMs = 1000
const patienceMs = 900

/** Whether uploads are taken, and if not why: for load balancers, containers and monitors. */
export class UploadHealth {
  #checkedMs = Number.NEGATIVE_INFINITY
  #payment: Promise<string | undefined> = Promise.resolve(undefined)

  constructor(private readonly parts: UploadHealthParts) {}

  /** 200, or 503 with `reasons`, in the shape of the gateway's healthcheck. */
  async ready(): Promise<UploadAnswer> {
    const { height, noRoomFor, storeRefusal } = this.parts
    const [unstored, leaving] = [storeRefusal(), leavingReason()]
    const reasons = [
      ...(leaving === undefined ? [] : [leaving]),
      ...(height() === undefined
        ? ['no base-layer node has reported the height of the chain yet: no upload is accepted']
        : []),
      ...(noRoomFor() === undefined ? [] : ['the disk is nearly full: no uploads are taken']),
      ...(unstored === undefined ? [] : [`${unstored.message}: no uploads are taken`]),
      ...[await this.#paymentFault()].filter((reason) => reason !== undefined),
    ]
    const warnings = this.parts.warnings?.() ?? []
    const life = { ...lifeOf(this.parts), ...(warnings.length === 0 ? {} : { warnings }) }
    if (reasons.length === 0) return jsonAnswer(200, life)
    return jsonAnswer(503, { ...life, status: 'unhealthy', reasons } satisfies Health)
  }

  /** That it answers. */
  live(): UploadAnswer {
    return jsonAnswer(200, lifeOf(this.parts))
  }

  #paymentFault(): Promise<string | undefined> {
    const { clock, credits } = this.parts
    const now = clock.monotonic()
    if (credits === undefined || now - this.#checkedMs < askEachMs) return this.#payment
    this.#checkedMs = now
    this.#payment = new Promise((resolve, reject) => {
      const finish = (outcome: Awaited<ReturnType<CreditsPort['price']>>): void => {
        timer.cancel()
        const why = isRefusal(outcome) ? outcome.message : undefined
        resolve(why && `the payment service does not answer, only what is free is taken: ${why}`)
      }
      const timer = clock.after(patienceMs, () =>
        finish(refuse('late', 'self', `not within ${patienceMs} ms`)),
      )
      credits.price(1).then(finish, reject)
    })
    return this.#payment
  }
}

/** Routes by which balancers and operators see whether the service takes uploads. */
export function healthRoutes(health: UploadHealth): UploadRoute[] {
  return [
    {
      path: '/health',
      summary: 'Whether new requests may come',
      statuses: [200, 503],
      type: 'text/plain',
      answer: () =>
        leavingReason() === undefined ? { status: 200, text: 'OK' } : { status: 503, text: 'Stopping' },
    },
    {
      path: '/healthcheck',
      summary: 'Whether uploads are taken, and if not why',
      statuses: [200, 503],
      answer: () => health.ready(),
    },
    { path: '/livez', summary: 'Whether it answers at all', statuses: [200], answer: () => health.live() },
  ]
}
