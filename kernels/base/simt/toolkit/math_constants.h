#pragma once

/// \file
/// CUDA's header of this name, for edited sources under emulation.

#include <math.h>

#include <limits>

#define CUDART_INF_F std::numeric_limits<float>::infinity()
#define CUDART_NAN_F __int_as_float(0x7FFFFFFF)
#define CUDART_MIN_DENORM_F 0x1p-149f
#define CUDART_MAX_NORMAL_F std::numeric_limits<float>::max()
#define CUDART_NORM_HUGE_F CUDART_MAX_NORMAL_F
#define CUDART_NEG_ZERO_F -0.0f
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
#define CUDART_SQRT_HALF_F static_cast<float>(M_SQRT1_2)
#define CUDART_SQRT_TWO_F static_cast<float>(M_SQRT2)
#define CUDART_THIRD_F (1.0f / 3)
#define CUDART_PIO4_F static_cast<float>(M_PI_4)
#define CUDART_PIO2_F static_cast<float>(M_PI_2)
#define CUDART_3PIO4_F static_cast<float>(3 * M_PI_4)
#define CUDART_2_OVER_PI_F static_cast<float>(M_2_PI)
#define CUDART_SQRT_2_OVER_PI_F static_cast<float>(CUDART_SQRT_2OPI)
#define CUDART_PI_F static_cast<float>(M_PI)
#define CUDART_L2E_F static_cast<float>(M_LOG2E)
#define CUDART_L2T_F static_cast<float>(CUDART_L2T)
#define CUDART_LG2_F static_cast<float>(CUDART_LG2)
#define CUDART_LGE_F static_cast<float>(M_LOG10E)
#define CUDART_LN2_F static_cast<float>(M_LN2)
#define CUDART_LNT_F static_cast<float>(M_LN10)
#define CUDART_LNPI_F static_cast<float>(CUDART_LNPI)
#define CUDART_TWO_TO_M126_F 0x1p-126f
#define CUDART_TWO_TO_126_F 0x1p126f
#define CUDART_TWO_TO_23_F 0x1p23f
#define CUDART_TWO_TO_24_F 0x1p24f
#define CUDART_TWO_TO_31_F 0x1p31f
#define CUDART_TWO_TO_32_F 0x1p32f

#define CUDART_INF std::numeric_limits<double>::infinity()
#define CUDART_NAN __longlong_as_double(0xFFF8000000000000)
#define CUDART_MIN_DENORM 0x1p-1074
#define CUDART_NEG_ZERO -0.0
#define CUDART_ZERO 0.0
#define CUDART_ONE 1.0
#define CUDART_SQRT_TWO M_SQRT2
#define CUDART_SQRT_HALF M_SQRT1_2
#define CUDART_THIRD (1.0 / 3)
#define CUDART_TWOTHIRD (2.0 / 3)
#define CUDART_PIO4 M_PI_4
#define CUDART_PIO2 M_PI_2
#define CUDART_3PIO4 (3 * M_PI_4)
#define CUDART_2_OVER_PI M_2_PI
#define CUDART_PI M_PI
#define CUDART_SQRT_2PI 2.5066282746310005
#define CUDART_SQRT_PIO2 1.2533141373155003
#define CUDART_SQRT_2OPI 0.79788456080286536
#define CUDART_L2E M_LOG2E
#define CUDART_L2T 3.3219280948873623
#define CUDART_LG2 0.30102999566398120
#define CUDART_LGE M_LOG10E
#define CUDART_LN2 M_LN2
#define CUDART_LNT M_LN10
#define CUDART_LNPI 1.1447298858494002
#define CUDART_TWO_TO_23 0x1p23
#define CUDART_TWO_TO_52 0x1p52
#define CUDART_TWO_TO_53 0x1p53
#define CUDART_TWO_TO_54 0x1p54
#define CUDART_TWO_TO_M54 0x1p-54
#define CUDART_TWO_TO_M1022 0x1p-1022
