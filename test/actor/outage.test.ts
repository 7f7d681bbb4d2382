import t from 'tap'
import { Outage } from '../../src/actor/outage.js'

t.test('an outage is told once, and its end once', async (t) => {
  const lines: string[] = []
  const at =
    (level: string) =>
    (...given: unknown[]): void => {
      lines.push(`${level} ${String(given.at(-1))}`)
    }
  const outage = new Outage({ warn: at('warn'), info: at('info') }, 'away', 'back')
  outage.well()
  for (const status of [500, 502]) outage.failed({ status })
  outage.well()
  outage.well()
  outage.failed({})
  t.strictSame(lines, ['warn away', 'info back', 'warn away'])
})
