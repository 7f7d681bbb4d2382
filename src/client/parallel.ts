/** Works on several at once. After a failure nothing new is begun; what is under way ends, and the first failure is thrown. */
export async function inParallel<One>(
  list: readonly One[],
  atOnce: number,
  work: (one: One) => Promise<void>,
): Promise<void> {
  const waiting = list.values()
  const failures: unknown[] = []
  const worker = async (): Promise<void> => {
    for (const one of waiting) {
      if (failures.length > 0) return
      try {
        await work(one)
      } catch (error) {
        failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, list.length) }, worker))
  if (failures.length > 0) throw failures[0]
}
