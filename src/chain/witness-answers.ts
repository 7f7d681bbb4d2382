/**
 * What several calls give, in their order, as soon as `isClear` holds for what has come, else when all have ended. Undefined: it
 * has not come by then. So the slowest of several nodes is waited for only where the others do not decide. Rejects with the first
 * call that does before.
 */
export async function untilClear<T>(
  calls: readonly Promise<T>[],
  isClear: (come: readonly T[]) => boolean,
): Promise<readonly (T | undefined)[]> {
  const come = new Map<number, T>()
  await new Promise<void>((resolve, reject) => {
    const note = (at: number, value: T): void => {
      come.set(at, value)
      if (come.size === calls.length || isClear([...come.values()])) resolve()
    }
    for (const [at, call] of calls.entries()) call.then((value) => note(at, value), reject)
  })
  return calls.map((_, at) => come.get(at))
}
