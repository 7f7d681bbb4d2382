import { deepEqual } from 'node:assert/strict'
import type { Test } from 'tap'
import {
  type BucketRules,
  type Buckets,
  type Named,
  resourceName,
  Ticket,
} from '../../src/admission/buckets.js'
import type { Client, Clients } from '../../src/admission/clients.js'
import { fc } from '../property.js'

/** Buckets under test, with a way to let time go on and to lose everything but what is on disk. */
export interface House {
  readonly buckets: Buckets
  readonly clients: Clients
  /** Undefined where time cannot be turned by hand. */
  readonly advance?: (seconds: number) => void
  /** The operator gives other rules. */
  use(rules: { readonly ip: BucketRules; readonly resource: BucketRules }): void
  /** The process stops in good order, and another one starts. */
  restart(): Promise<void>
  close(): Promise<void>
}

export type Open = (rules: { readonly ip: BucketRules; readonly resource: BucketRules }) => Promise<House>

export function named(path: string, host = 'gateway.test', method = 'GET'): Named {
  return { method, path, header: (name) => (name === 'host' ? host : undefined) }
}

export function clientAt(clients: Clients, address: string): Client {
  const client = clients.at(address)
  if (client === undefined) throw new Error(`${address} is no address`)
  return client
}

/** What buckets are, in a few lines: the reference that every implementation is held against. */
class Model {
  readonly #lacking = new Map<string, number>()
  readonly #paid = new Map<string, number>()
  readonly #payments = new Set<string>()

  constructor(private readonly rules: { readonly ip: BucketRules; readonly resource: BucketRules }) {}

  #rule(bucket: string): BucketRules {
    return bucket.startsWith('/') ? this.rules.resource : this.rules.ip
  }

  regular(bucket: string): number {
    return this.#rule(bucket).capacity - (this.#lacking.get(bucket) ?? 0)
  }

  paid(bucket: string): number {
    return this.#paid.get(bucket) ?? 0
  }

  #move(bucket: string, regular: number, paid: number): void {
    this.#lacking.set(bucket, Math.max(0, (this.#lacking.get(bucket) ?? 0) - regular))
    this.#paid.set(bucket, this.paid(bucket) + paid)
  }

  take(ip: string, resource: string, tokens: number, only: boolean): { ip: number; paid: number } | string {
    const regular = Math.min(this.regular(ip), tokens)
    const paid = tokens - regular
    if (paid > this.paid(ip)) return 'ip'
    if (!only && paid === 0) {
      const free = Math.min(this.regular(resource), tokens)
      if (tokens - free > this.paid(resource)) {
        if (2 * this.regular(ip) >= this.#rule(ip).capacity) {
          this.#move(ip, -tokens, 0)
          return { ip: tokens, paid: 0 }
        }
        if (this.paid(ip) < tokens) return 'resource'
        this.#move(ip, 0, -tokens)
        return { ip: tokens, paid: tokens }
      }
      this.#move(resource, -free, free - tokens)
      this.held.push({ bucket: resource, regular: free, paid: tokens - free })
    }
    this.#move(ip, -regular, -paid)
    return { ip: tokens, paid }
  }

  /** What was taken from resources, in order: how much of it was paid is for `give`. */
  readonly held: { bucket: string; regular: number; paid: number }[] = []

  give(ip: string, paidTaken: number, tokens: number, held: Model['held'][number] | undefined): void {
    const paid = Math.min(tokens, paidTaken)
    this.#move(ip, tokens - paid, paid)
    if (held === undefined) return
    const back = Math.min(tokens, held.paid)
    this.#move(held.bucket, tokens - back, back)
  }

  credit(bucket: string, payment: string, tokens: number): string {
    if (this.#payments.has(payment)) return 'known'
    this.#payments.add(payment)
    this.#move(bucket, 0, tokens)
    return 'credited'
  }

  advance(seconds: number): void {
    for (const [bucket, lacking] of this.#lacking) {
      this.#lacking.set(bucket, Math.max(0, lacking - seconds * this.#rule(bucket).refillPerSecond))
    }
  }
}

const addresses = ['203.0.113.1', '203.0.113.2', '2001:db8::']
const paths = ['/a', '/b']

const command = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      ip: fc.constantFrom(...addresses),
      path: fc.constantFrom(...paths),
      tokens: fc.integer({ min: 1, max: 60 }),
      only: fc.boolean(),
      /** How many of them are given back, in percent, and after how many other commands. */
      back: fc.integer({ min: 0, max: 100 }),
      later: fc.nat(4),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('credit' as const),
      bucket: fc.constantFrom(...addresses, ...paths),
      payment: fc.nat(8),
      tokens: fc.integer({ min: 1, max: 100 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), seconds: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
)

/** Every implementation of `Buckets` behaves as the model does. */
export async function conform(
  t: Test,
  open: Open,
  runs: { numRuns: number; refills: boolean },
): Promise<void> {
  const bucketName = (bucket: string): string =>
    bucket.startsWith('/') ? resourceName(named(bucket)) : bucket

  await t.test('takes, refunds, refills, payments and restarts leave what the model leaves', async (t) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(command, { maxLength: 30 }),
        runs.refills ? fc.integer({ min: 0, max: 5 }) : fc.constant(0),
        async (commands, rate) => {
          const rules = {
            ip: { capacity: 40, refillPerSecond: rate },
            resource: { capacity: 50, refillPerSecond: rate },
          }
          const house = await open(rules)
          const model = new Model(rules)
          const due: { at: number; act: () => void }[] = []
          try {
            for (const [at, one] of commands.entries()) {
              // Each gives back once: what is done is not due any more when a stop comes.
              const now = due.filter((some) => some.at === at)
              due.splice(0, due.length, ...due.filter((some) => some.at !== at))
              for (const { act } of now) act()
              if (one.kind === 'take') {
                const before = model.held.length
                const wanted = model.take(one.ip, one.path, one.tokens, one.only)
                const held = model.held[before]
                const got = await house.buckets.take(
                  clientAt(house.clients, one.ip),
                  named(one.path),
                  one.tokens,
                  one.only ? 'client' : 'both',
                )
                if (!(got instanceof Ticket)) {
                  deepEqual('short' in got ? got.short : got, wanted, `take ${at}`)
                  continue
                }
                deepEqual({ ip: got.tokens, paid: got.paid }, wanted, `take ${at}`)
                const tokens = Math.floor((one.tokens * one.back) / 100)
                const act = (): void => {
                  if (tokens === 0 || typeof wanted === 'string') return
                  got.give(tokens)
                  model.give(one.ip, wanted.paid, tokens, held)
                }
                if (one.later === 0) act()
                else due.push({ at: at + one.later, act })
              } else if (one.kind === 'credit') {
                const { bucket, tokens } = one
                const payment = `payer:${one.payment}`
                const got = await house.buckets.credit(bucketName(bucket), payment, tokens)
                deepEqual(got, model.credit(bucket, payment, tokens), `credit ${at}`)
              } else if (one.kind === 'advance') {
                house.advance?.(one.seconds)
                model.advance(one.seconds)
              } else {
                // Whoever is being answered is refunded first: that is what a stop in order means.
                for (const { act } of due.splice(0)) act()
                await house.restart()
              }
            }
            for (const bucket of [...addresses, ...paths]) {
              const found = bucket.startsWith('/')
                ? await house.buckets.ofResource(named(bucket))
                : await house.buckets.ofClient(clientAt(house.clients, bucket))
              const { capacity } = bucket.startsWith('/') ? rules.resource : rules.ip
              const left = found ?? { tokens: capacity, paidTokens: 0 }
              const given = due.filter((some) => some.at >= commands.length).length
              if (given === 0)
                deepEqual(left, { tokens: model.regular(bucket), paidTokens: model.paid(bucket) }, bucket)
            }
          } finally {
            await house.close()
          }
        },
      ),
      { numRuns: runs.numRuns },
    )
    t.pass('they agree')
  })

  await t.test('a shortage says which limit, and when to come again', async (t) => {
    const house = await open({
      ip: { capacity: 10, refillPerSecond: 2 },
      resource: { capacity: 5, refillPerSecond: 1 },
    })
    t.teardown(() => house.close())
    const client = clientAt(house.clients, '203.0.113.7')
    t.ok((await house.buckets.take(client, named('/x'), 4, 'both')) instanceof Ticket)
    t.ok((await house.buckets.take(client, named('/z'), 2, 'client')) instanceof Ticket)
    // The resource would have its tokens in 2 seconds, the client half of its own in 1.
    t.match(await house.buckets.take(client, named('/x'), 3, 'both'), { short: 'resource', retrySeconds: 1 })
    t.ok((await house.buckets.take(client, named('/z'), 4, 'client')) instanceof Ticket)
    t.match(await house.buckets.take(client, named('/y'), 5, 'both'), { short: 'ip', retrySeconds: 3 })
    t.match(await house.buckets.take(client, named('/y'), 11, 'both'), {
      short: 'ip',
      retrySeconds: undefined,
    })
  })

  await t.test('strangers who use up what a resource has keep nobody else from it', async (t) => {
    const house = await open({
      ip: { capacity: 100, refillPerSecond: 0 },
      resource: { capacity: 300, refillPerSecond: 0 },
    })
    t.teardown(() => house.close())
    const at = (address: string) => clientAt(house.clients, address)
    const take = async (address: string, tokens: number) =>
      house.buckets.take(at(address), named('/page'), tokens, 'both')
    // The first takes all that it has, the resource has less than the next ask for.
    for (let each = 1; each <= 3; each += 1)
      t.ok((await take(`198.51.100.${each}`, 90)) instanceof Ticket, 'what there is')
    t.match(await take('198.51.100.1', 31), { short: 'ip' })
    for (let each = 10; each < 40; each += 1) t.ok((await take(`192.0.2.${each}`, 1)) instanceof Ticket)
    t.match(await house.buckets.ofResource(named('/page')), { tokens: 0 })
    t.match(await take('198.51.100.2', 1), { short: 'resource', retrySeconds: undefined }, 'who took most')
    for (let each = 1; each <= 20; each += 1) {
      const newcomer = `203.0.113.${each}`
      const taken = await take(newcomer, 50)
      t.ok(taken instanceof Ticket, 'who comes now')
      t.match(await house.buckets.ofClient(at(newcomer)), { tokens: 50 }, 'pays of its own')
      if (each % 2 === 0 && taken instanceof Ticket) {
        t.equal(taken.resourceTokens, 0)
        taken.give(50)
        t.match((await house.buckets.ofClient(at(newcomer))) ?? { tokens: 100 }, { tokens: 100 })
      }
    }
    t.match(await house.buckets.ofResource(named('/page')), { tokens: 0 }, 'nothing of it was taken or given')
    await house.buckets.credit(resourceName(named('/page')), 'sponsor', 5)
    t.ok((await take('198.51.100.2', 5)) instanceof Ticket, 'what was paid for the resource is for all')
  })

  await t.test('other rules count at once, and what was taken stays taken', async (t) => {
    const resource = { capacity: 1000, refillPerSecond: 0 }
    const house = await open({ ip: { capacity: 10, refillPerSecond: 0 }, resource })
    t.teardown(() => house.close())
    const client = clientAt(house.clients, '203.0.113.8')
    const takes = async (tokens: number) => house.buckets.take(client, named('/x'), tokens, 'both')
    t.ok((await takes(8)) instanceof Ticket)
    t.match(await takes(3), { short: 'ip', retrySeconds: undefined })
    house.use({ ip: { capacity: 100, refillPerSecond: 0 }, resource })
    t.same(house.buckets.rules.ip, { capacity: 100, refillPerSecond: 0 })
    t.match(await house.buckets.ofClient(client), { tokens: 92 })
    t.ok((await takes(90)) instanceof Ticket)
    await house.buckets.credit('203.0.113.8', 'payer:rules', 4)
    house.use({ ip: { capacity: 6, refillPerSecond: 2 }, resource: { capacity: 1, refillPerSecond: 1 } })
    // 98 tokens are lacking, which would take 46 seconds to come back: a bucket of 6 lacks 6.
    t.match(await takes(9), { short: 'ip', retrySeconds: 3 })
    const other = clientAt(house.clients, '203.0.113.9')
    t.ok((await house.buckets.take(other, named('/y'), 4, 'client')) instanceof Ticket)
    t.match(await house.buckets.take(other, named('/x'), 2, 'both'), { short: 'resource' })
    t.match(await house.buckets.ofClient(client), { paidTokens: 4 })
  })

  await t.test(
    'one payment asked for by many at once counts once, and no bucket gets what is not its own',
    async (t) => {
      const rules = { capacity: 10, refillPerSecond: 0 }
      const house = await open({ ip: rules, resource: rules })
      t.teardown(() => house.close())
      const credited = Array.from({ length: 8 }, () =>
        house.buckets.credit('198.51.100.1', 'payer:nonce', 70),
      )
      const outcomes = (await Promise.all(credited)).sort()
      t.same(outcomes, ['credited', ...new Array<string>(7).fill('known')])
      t.match(await house.buckets.ofClient(clientAt(house.clients, '198.51.100.1')), { paidTokens: 70 })
      t.equal(await house.buckets.ofClient(clientAt(house.clients, '198.51.100.2')), undefined)
      await t.rejects(house.buckets.credit('not an address', 'other', 1), {
        message: 'there is no such bucket',
      })
    },
  )

  await t.test(
    'resources differ by host, method and path; doubled slashes and the case of hosts do not',
    async (t) => {
      const rules = { capacity: 10, refillPerSecond: 0 }
      const house = await open({ ip: { capacity: 1000, refillPerSecond: 0 }, resource: rules })
      t.teardown(() => house.close())
      const client = clientAt(house.clients, '203.0.113.9')
      const others = [
        named('/b'),
        named('/a', 'other.test'),
        named('/a', 'gateway.test', 'HEAD'),
        named(`/${'a'.repeat(300)}`),
      ]
      await house.buckets.take(client, named('//a', 'GATEWAY.test'), 3, 'both')
      t.match(await house.buckets.ofResource(named('/a')), { tokens: 7 })
      for (const other of others) t.equal(await house.buckets.ofResource(other), undefined)
      for (const other of others) await house.buckets.take(client, other, 1, 'both')
      for (const other of others) t.match(await house.buckets.ofResource(other), { tokens: 9 })
    },
  )
}
