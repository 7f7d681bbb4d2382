import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Chain } from '../../bench/index/chain.js'
import { pause } from '../../src/actor/clock.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { type IndexTables, openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { blockMessage, itemsMessage, openHouse } from './index-model.js'
import { killedChain } from './killed-chain.js'

/** Without those about the made-up owners of the bench, which have addresses of their own. */
export const sound = (problems: readonly string[]): string[] =>
  problems.filter((problem) => !problem.startsWith("the owner's key"))

export interface Kills {
  readonly max: number
  /** How much longer each process lives than the one before. */
  readonly stepMs: number
}

/**
 * Starts a program that imports into the folder `words[0]` until it has come to its end, and kills it `max` times. `look` gets
 * the index after each, and what is wrong with it.
 */
export async function killAgain(
  program: string,
  words: readonly [path: string, ...rest: string[]],
  { max, stepMs }: Kills,
  look: (problems: readonly string[], kills: number, tables: IndexTables) => void,
): Promise<void> {
  for (let kills = 0, done = false; !done; kills += 1) {
    const child = fork(program, [...words], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const ended = once(child, 'exit')
    await once(child, 'message')
    if (kills < max) await Promise.race([ended, pause(10 + stepMs * kills)])
    else await ended
    done = child.exitCode === 0
    if (!done) {
      child.kill('SIGKILL')
      await ended
    }
    const { environment } = openCatalogTables(words[0])
    const tables = openIndexTables(environment)
    look(sound(checkIndex(tables, 1_000_000).problems), kills, tables)
    await environment.close()
  }
}

/** An index of the same chain whose writer was never killed. */
export async function neverKilled(): Promise<ReturnType<typeof openHouse>> {
  const whole = openHouse()
  for (const { block, transactions, bundles } of new Chain(killedChain).blocks()) {
    await whole.apply([blockMessage(block, transactions)])
    await whole.apply(bundles.map(({ rootId, items }) => itemsMessage(rootId, items)))
  }
  return whole
}
