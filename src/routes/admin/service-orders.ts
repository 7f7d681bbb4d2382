import { abortAfter } from '../../actor/clock.js'
import type { AdminKey } from './admin-key.js'
import { done, isOrderAnswer, type Order, type OrderAnswer, type OrderCall, readBody } from './order.js'
import { creditForms, uploadForms } from './service-forms.js'

/** The operations of the upload service for its operator. */
export interface UploadsDeskLike {
  overview(): Promise<object>
  one(id: string): object | undefined
  repack(id: string): Promise<Outcome>
  reseed(id: string): Promise<Outcome>
  trust(id: string): Promise<Outcome>
}

/** The same of the payment service. */
export interface CreditsDeskLike {
  overview(): Promise<object>
  account(address: string): Promise<object | undefined>
  statement(address: string): Promise<string>
  correct(correction: {
    readonly key: string
    readonly address: string
    readonly winc: string
    readonly note: string
    readonly by: string
  }): Promise<Outcome>
}

type Outcome = { readonly done: string } | { readonly refused: string; readonly isUnknown?: true }

/** An order without its hand: the gateway shows it, too, and passes it on. */
export type OrderShape = Omit<Order, 'act'>

const uploadShapes = {
  overview: {
    method: 'GET',
    path: 'uploads',
    summary: 'Uploads, queues, bundles, wallet',
    statuses: [200],
    shape: uploadForms.overview,
  },
  one: {
    method: 'GET',
    path: 'uploads/',
    rest: 'id',
    summary: 'An uploaded item or a bundle',
    statuses: [200, 404],
    shape: uploadForms.one,
  },
  repack: {
    method: 'POST',
    path: 'uploads-repack/',
    rest: 'id',
    summary: 'Packs the items of a bundle again, or an item that was given up',
    statuses: [200, 404, 409],
    shape: uploadForms.repack,
  },
  reseed: {
    method: 'POST',
    path: 'uploads-reseed/',
    rest: 'id',
    summary: 'Sends the chunks of a bundle once more; `all`: of all whose data no node shows',
    statuses: [200, 404, 409],
    shape: uploadForms.reseed,
  },
  trust: {
    method: 'POST',
    path: 'uploads-trust/',
    rest: 'id',
    summary: 'Takes a bundle for permanent though no node shows its data; `all`: all such bundles',
    statuses: [200, 404, 409],
    shape: uploadForms.trust,
  },
} as const satisfies Record<keyof UploadsDeskLike, OrderShape>

const creditShapes = {
  overview: {
    method: 'GET',
    path: 'credits',
    summary: 'Prices, top-ups, promotions',
    statuses: [200],
    shape: creditForms.overview,
  },
  account: {
    method: 'GET',
    path: 'credits/',
    rest: 'address',
    summary: 'A wallet and its last transfers',
    statuses: [200, 404],
    shape: creditForms.account,
  },
  statement: {
    method: 'GET',
    path: 'statements/',
    rest: 'address',
    summary: 'The transfers of a wallet as CSV',
    statuses: [200],
    type: 'text/csv',
  },
  correct: {
    method: 'POST',
    path: 'corrections',
    summary: 'Corrects a balance, by a transfer with a reason',
    statuses: [200, 409],
    shape: creditForms.correct,
  },
} as const satisfies Record<keyof CreditsDeskLike, OrderShape>

export const uploadOrderShapes: readonly OrderShape[] = Object.values(uploadShapes)
export const creditOrderShapes: readonly OrderShape[] = Object.values(creditShapes)

/** The admin orders of the upload service. */
export function uploadOrders(desk: UploadsDeskLike): Order[] {
  return [
    { ...uploadShapes.overview, act: async () => ({ status: 200, body: await desk.overview() }) },
    { ...uploadShapes.one, act: ({ rest }) => found(desk.one(rest)) },
    { ...uploadShapes.repack, act: async ({ rest }) => answerOfOutcome(await desk.repack(rest)) },
    { ...uploadShapes.reseed, act: async ({ rest }) => answerOfOutcome(await desk.reseed(rest)) },
    { ...uploadShapes.trust, act: async ({ rest }) => answerOfOutcome(await desk.trust(rest)) },
  ]
}

/** Loaded with the first correction: zod takes 6.7 MB of a thread that has not loaded it yet. */
const shapes = () => import('./correction-shape.js')

/** The admin orders of the payment service. */
export function creditOrders(desk: CreditsDeskLike): Order[] {
  return [
    { ...creditShapes.overview, act: async () => ({ status: 200, body: await desk.overview() }) },
    { ...creditShapes.account, act: async ({ rest }) => found(await desk.account(rest)) },
    {
      ...creditShapes.statement,
      act: async ({ rest }) => ({
        status: 200,
        body: await desk.statement(rest),
        type: 'text/csv; charset=utf-8',
      }),
    },
    {
      ...creditShapes.correct,
      act: async ({ body, by }) => {
        const read = readBody((await shapes()).correctionShape, body)
        return isOrderAnswer(read) ? read : answerOfOutcome(await desk.correct({ ...read, by }))
      },
    },
  ]
}

function found(value: object | undefined): OrderAnswer {
  return value === undefined ? { status: 404, body: 'Nothing is known of it' } : { status: 200, body: value }
}

function answerOfOutcome(outcome: Outcome): OrderAnswer {
  if ('done' in outcome) return done(outcome.done)
  return { status: outcome.isUnknown === true ? 404 : 409, body: outcome.refused }
}

/** A statement of ten thousand lines takes seconds. */
const limitMs = 30_000

/** What passes an order on to the service that carries it out; resolves with its answer. */
export type PassOn = (order: OrderShape, call: OrderCall) => Promise<OrderAnswer>

/** Orders that a service of this program carries out on its own port, where the same key opens them. */
export function passedOrders(shapes: readonly OrderShape[], pass: PassOn): Order[] {
  return shapes.map((shape) => ({
    ...shape,
    statuses: [...shape.statuses, 502],
    act: (call) => pass(shape, call),
  }))
}

/** Passes orders to a service of this program over its own port. */
export function passingTo(url: string, key: AdminKey): PassOn {
  return async ({ method, path }, { rest, body, query }) => {
    const text = query.toString()
    const address = `${url}/admin/${path}${encodeURIComponent(rest)}${text === '' ? '' : `?${text}`}`
    const headers = { authorization: key.line }
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    try {
      const answer = await fetch(address, { method, headers, ...content, signal: abortAfter(limitMs) })
      const type = answer.headers.get('content-type') ?? ''
      const isJson = type.startsWith('application/json')
      const answered = isJson ? ((await answer.json()) as object) : await answer.text()
      return { status: answer.status, body: answered, ...(isJson ? {} : { type }) }
    } catch (error) {
      return {
        status: 502,
        body: `The service does not answer: ${error instanceof Error ? error.message : error}`,
      }
    }
  }
}
