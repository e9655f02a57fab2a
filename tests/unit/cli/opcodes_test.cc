// Instructions as nvcc and nvdisasm of CUDA 13 write them for sm_90a and sm_100a.
#include "client/cli/opcodes.h"

#include <gtest/gtest.h>

namespace gridclock::cli {
namespace {

TEST(Opcodes, TheOpcodeStandsBehindThePredicate) {
  EXPECT_EQ(OpcodeOf("@!P0 LDG.E R4, desc[UR4][R2.64] ;"), "LDG.E");
  EXPECT_EQ(OpcodeOf("@%p1 bra $L__BB0_2;"), "bra");
  EXPECT_EQ(OpcodeOf("EXIT ;"), "EXIT");
  EXPECT_EQ(OpcodeOf("ret;"), "ret");
  EXPECT_EQ(OpcodeOf("@P0"), "");
}

TEST(MemoryOfSass, LoadsAndStoresHaveTheWidthOfAThread) {
  EXPECT_EQ(MemoryOfSass("LDG.E R5, desc[UR8][R2.64] ;"), "load global 4 B");
  EXPECT_EQ(MemoryOfSass("LDG.E.S16 R2, desc[UR8][R2.64] ;"), "load global 2 B");
  EXPECT_EQ(MemoryOfSass("STG.E.64 desc[UR8][R2.64+0x48], R12 ;"), "store global 8 B");
  EXPECT_EQ(MemoryOfSass("LDG.E.ENL2.256.CONSTANT R16, R12, desc[UR6][R2.64] ;"),
            "load global 32 B");
  EXPECT_EQ(MemoryOfSass("STG.E.ENL2.256 desc[UR4][R2.64], R8, R4 ;"), "store global 32 B");
  EXPECT_EQ(MemoryOfSass("STAS.128 [R2.64], R4 ;"), "store shared 16 B");
  EXPECT_EQ(MemoryOfSass("STL.128 [R1], R4 ;"), "store local 16 B");
  EXPECT_EQ(MemoryOfSass("LD.E R0, desc[UR8][R2.64] ;"), "load generic 4 B");
  EXPECT_EQ(MemoryOfSass("FADD R2, R3, R4 ;"), "");
}

TEST(MemoryOfSass, OfConstantsTheParametersAreNoTraffic) {
  EXPECT_EQ(MemoryOfSass("LDC R5, c[0x3][R0] ;"), "load constant 4 B");
  EXPECT_EQ(MemoryOfSass("LDC.64 R16, c[0x3][R13+0x8] ;"), "load constant 8 B");
  EXPECT_EQ(MemoryOfSass("ULDC.U8 UR4, c[0x3][UR4+0xc0] ;"), "load constant 1 B");
  EXPECT_EQ(MemoryOfSass("LDCU.128 UR8, c[0x3][0x380] ;"), "load constant 16 B");
  EXPECT_EQ(MemoryOfSass("LDC R1, c[0x0][0x28] ;"), "");
  EXPECT_EQ(MemoryOfSass("LDCU.64 UR6, c[0x0][0x390] ;"), "");
  EXPECT_EQ(MemoryOfSass("ULDC.64 UR4, c[0x0][0x208] ;"), "");
}

TEST(MemoryOfSass, MatricesHaveTheBytesOfAThreadTimesTheirNumber) {
  EXPECT_EQ(MemoryOfSass("LDSM.16.M88 R15, [R0] ;"), "load shared 4 B");
  EXPECT_EQ(MemoryOfSass("LDSM.16.MT88.2 R4, [R0] ;"), "load shared 8 B");
  EXPECT_EQ(MemoryOfSass("LDSM.16.M88.4 R8, [R0] ;"), "load shared 16 B");
  EXPECT_EQ(MemoryOfSass("LDSM.8.MT1616 R12, [R0] ;"), "load shared 8 B");
  EXPECT_EQ(MemoryOfSass("LDSM.8.MT1616.2 R8, [R0] ;"), "load shared 16 B");
  EXPECT_EQ(MemoryOfSass("LDSM.U4x16P64TO8.M816.4 R4, [R0] ;"), "load shared 16 B");
  EXPECT_EQ(MemoryOfSass("STSM.16.M88.4 [R0], R8 ;"), "store shared 16 B");
  EXPECT_EQ(MemoryOfSass("STSM.8.MT168.2 [R0], R4 ;"), "store shared 8 B");
}

TEST(MemoryOfSass, CopiesToSharedMemoryHaveAWidthUnlessTheyAreInBulk) {
  EXPECT_EQ(MemoryOfSass("LDGSTS.E [R9], desc[UR6][R4.64] ;"), "copy global to shared 4 B");
  EXPECT_EQ(MemoryOfSass("LDGSTS.E.BYPASS.128 [R9], desc[UR6][R2.64] ;"),
            "copy global to shared 16 B");
  EXPECT_EQ(MemoryOfSass("LDGDEPBAR ;"), "");
  EXPECT_EQ(MemoryOfSass("UBLKCP.S.G [UR4], [UR6], UR8 ;"), "bulk copy global to shared");
  EXPECT_EQ(MemoryOfSass("UBLKCP.S.G.MULTICAST [UR6], [UR4], UR8 ;"), "bulk copy global to shared");
  EXPECT_EQ(MemoryOfSass("UBLKCP.G.S [UR6], [UR4], UR8 ;"), "bulk copy shared to global");
  EXPECT_EQ(MemoryOfSass("UBLKCP.S.S [UR6], [UR8], UR4 ;"), "bulk copy shared to shared");
  EXPECT_EQ(MemoryOfSass("UBLKRED.G.S.ADD.F32.RN [UR6], [UR4], UR8 ;"), "bulk atomic global");
  EXPECT_EQ(MemoryOfSass("UBLKRED.S.S.ADD [UR6], [UR8], UR4 ;"), "bulk atomic shared");
  EXPECT_EQ(MemoryOfSass("UTMALDG.2D [UR8], [UR4] ;"), "bulk copy global to shared");
  EXPECT_EQ(MemoryOfSass("UTMASTG.2D [UR8], [UR4] ;"), "bulk copy shared to global");
  EXPECT_EQ(MemoryOfSass("UTMAREDG.2D.ADD [UR8], [UR4] ;"), "bulk atomic global");
  EXPECT_EQ(MemoryOfSass("UTMAPF.L2.2D [UR8], [UR4] ;"), "");
  EXPECT_EQ(MemoryOfSass("UBLKPF.L2 [UR4], UR6 ;"), "");
}

TEST(MemoryOfSass, AtomicsHaveTheWidthOfTheirVector) {
  EXPECT_EQ(MemoryOfSass("ATOMS.CAST.SPIN.64 R6, [R9], R4, R6 ;"), "atomic shared 8 B");
  EXPECT_EQ(MemoryOfSass("REDG.E.ADD.F64.RN.STRONG.GPU desc[UR8][R2.64], R4 ;"),
            "atomic global 8 B");
  EXPECT_EQ(MemoryOfSass("REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU desc[UR8][R2.64], R4 ;"),
            "atomic global 16 B");
  EXPECT_EQ(MemoryOfSass("REDG.E.ADD.BF16x8.RN.STRONG.GPU desc[UR8][R10.64], R4 ;"),
            "atomic global 16 B");
  EXPECT_EQ(MemoryOfSass("ATOM.E.ADD.F16x2.RN.STRONG.GPU P0, RZ, desc[UR8][R2.64], R7 ;"),
            "atomic generic 4 B");
  EXPECT_EQ(MemoryOfSass("ATOMG.E.EXCH.128.STRONG.GPU PT, RZ, desc[UR8][R8.64+0x90], R12 ;"),
            "atomic global 16 B");
}

TEST(MemoryOfPtx, HasSpaceAndWidth) {
  EXPECT_EQ(MemoryOfPtx("ld.global.nc.v4.b64 {%rd1,%rd2,%rd3,%rd4}, [%rd9];"), "load global 32 B");
  EXPECT_EQ(MemoryOfPtx("st.global.v8.f32 [%rd9], {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8};"),
            "store global 32 B");
  EXPECT_EQ(MemoryOfPtx("ld.const.f32 %f1, [%rd2];"), "load constant 4 B");
  EXPECT_EQ(MemoryOfPtx("ld.param.u64 %rd1, [f_param_0];"), "");
  EXPECT_EQ(MemoryOfPtx("ld.f32 %f1, [%rd1];"), "load generic 4 B");
  EXPECT_EQ(MemoryOfPtx("ld.shared::cluster.u32 %r1, [%r2];"), "load shared 4 B");
  EXPECT_EQ(MemoryOfPtx("@%p1 red.global.add.noftz.v8.bf16 [%rd1], {%h1};"), "atomic global 16 B");
  EXPECT_EQ(MemoryOfPtx("red.global.add.noftz.v4.bf16x2 [%rd1], {%r1};"), "atomic global 16 B");
  EXPECT_EQ(MemoryOfPtx("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r1], {};"),
            "store shared 16 B");
  EXPECT_EQ(MemoryOfPtx("add.f32 %f1, %f2, %f3;"), "");
}

TEST(MemoryOfPtx, MatricesAndCopiesAreThoseOfTheMachine) {
  EXPECT_EQ(MemoryOfPtx("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1}, [%r5];"),
            "load shared 16 B");
  EXPECT_EQ(MemoryOfPtx("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r1}, [%r5];"),
            "load shared 4 B");
  EXPECT_EQ(MemoryOfPtx("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r1}, [%r5];"),
            "load shared 16 B");
  EXPECT_EQ(MemoryOfPtx("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r5], {%r1, %r2};"),
            "store shared 8 B");
  EXPECT_EQ(MemoryOfPtx("cp.async.cg.shared.global [%r1], [%rd1], 16;"),
            "copy global to shared 16 B");
  EXPECT_EQ(MemoryOfPtx("cp.async.ca.shared.global [%r1], [%rd1], 8, %r2;"),
            "copy global to shared 8 B");
  EXPECT_EQ(MemoryOfPtx("cp.async.commit_group;"), "");
  EXPECT_EQ(MemoryOfPtx("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
                        "[%rd1], %r2, [%r3];"),
            "bulk copy global to shared");
  EXPECT_EQ(MemoryOfPtx("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], "
                        "[%r3];"),
            "bulk copy shared to global");
  EXPECT_EQ(MemoryOfPtx("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], "
                        "%r2;"),
            "bulk atomic global");
  EXPECT_EQ(MemoryOfPtx("cp.async.bulk.prefetch.L2.global [%rd1], %r2;"), "");
  EXPECT_EQ(MemoryOfPtx("cp.async.bulk.commit_group;"), "");
}

}  // namespace
}  // namespace gridclock::cli
