import type { Environment, Table } from '../../src/store/lmdb.js'

/** A database that counts what is read of it: each entry or key that a reader gets, and each that is not there. */
export interface CountedReads {
  readonly environment: Environment
  reads: number
}

export function countedReads(sound: Environment): CountedReads {
  const counted: CountedReads = {
    reads: 0,
    environment: { ...sound, table: (name) => countedTable(sound.table(name), () => (counted.reads += 1)) },
  }
  return counted
}

function countedTable(table: Table, read: () => void): Table {
  function* each<T>(found: Iterable<T>): Generator<T> {
    for (const one of found) {
      read()
      yield one
    }
  }
  const once =
    <Given extends unknown[], Found>(look: (...given: Given) => Found) =>
    (...given: Given): Found => {
      read()
      return look(...given)
    }
  return {
    ...table,
    get: once(table.get),
    view: once(table.view),
    ceiling: once(table.ceiling),
    floor: once(table.floor),
    from: (start, limit) => [...each(table.from(start, limit))],
    span: (wanted) => each(table.span(wanted)),
    keys: (wanted) => each(table.keys(wanted)),
  }
}
