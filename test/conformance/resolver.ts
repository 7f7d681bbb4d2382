import type { Test } from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import { parseName } from '../../src/names/name.js'
import {
  isResolved,
  type Name,
  type NameRecord,
  type ResolveContext,
  type Resolver,
} from '../../src/names/names-port.js'

export interface ResolverCase {
  readonly resolver: Resolver
  /** What it knows, by full name: `site`, `docs_site` and `over_site` at least, each with every field. */
  readonly has: ReadonlyMap<string, NameRecord>
  /** Makes it fail from now on. Absent: it cannot fail. */
  readonly breaks?: () => Promise<void>
}

function named(text: string): Name {
  const name = parseName(text)
  if (name === undefined) throw new Error(text)
  return name
}

const asking = (signal = new AbortController().signal): ResolveContext => ({ hops: 0, via: [], signal })

/** What every implementation of `Resolver` does, and every decorator of one. */
export async function conformResolver(t: Test, { resolver, has, breaks }: ResolverCase): Promise<void> {
  await t.test('names and undernames are found with everything that is known of them', async (t) => {
    for (const [full, record] of has)
      t.strictSame(await resolver.resolve(named(full), asking()), record, full)
  })

  await t.test('names that do not exist are absent, and so are undernames of those that do', async (t) => {
    for (const full of ['nobody', 'other_site', 'site_docs', 'a'.repeat(51)]) {
      t.equal(await resolver.resolve(named(full), asking()), 'absent', full)
    }
  })

  await t.test('many names at once are each answered', async (t) => {
    const names = Array.from({ length: 60 }, (_, at) => (at % 2 === 0 ? 'site' : `no${at}`))
    const verdicts = await Promise.all(names.map((full) => resolver.resolve(named(full), asking())))
    verdicts.forEach((verdict, at) => {
      if (at % 2 === 0) t.ok(isResolved(verdict) && verdict.id === has.get('site')?.id)
      else t.equal(verdict, 'absent')
    })
  })

  await t.test('whoever gives up is answered all the same', async (t) => {
    const abort = new AbortController()
    abort.abort()
    const verdict = await resolver.resolve(named('site'), asking(abort.signal))
    t.ok(isRefusal(verdict) || isResolved(verdict))
  })

  if (breaks === undefined) return
  await t.test('failing is a refusal, never "absent"', async (t) => {
    await breaks()
    for (const full of ['site', 'nobody']) {
      const verdict = await resolver.resolve(named(full), asking())
      t.match(verdict, { refused: 'upstream', fault: 'upstream' }, full)
    }
  })
}
